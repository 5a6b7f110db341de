import {
  loadConfiguration,
  newUuidV7,
  runService,
  settingsForLog,
  startAdminServer,
  type ServiceContext,
} from '@weir/runtime'
import { assembleService, openLogs } from './adapters/assemble.ts'
import { startHttpServer } from './adapters/http-server.ts'
import { configSchema, readConfig } from './config.ts'
import { createIngestMetrics } from './metrics.ts'

runService('ingest', start)

async function start(context: ServiceContext): Promise<void> {
  const { env, log, lifecycle, clock } = context
  const settings = readConfig(env)
  log.info({ settings: settingsForLog(configSchema, settings) }, 'settings')
  const configuration = await loadConfiguration(settings.WEIR_CONFIG, env, { secretsOf: ['sources', 'clients'] })
  const metrics = createIngestMetrics(context.metrics)

  // Closes last, so that readiness is red from the beginning of the stop to its end.
  let notReady: () => string | null = () => 'starting'
  const health = { live: () => null, ready: () => (lifecycle.stopping ? 'stopping' : notReady()) }
  const { WEIR_ADMIN_HOST: host, WEIR_ADMIN_PORT: port } = settings
  const admin = await startAdminServer({ host, port, health, metrics: context.metrics, log })
  lifecycle.onStop('admin', () => admin.close())

  const logs = await openLogs(context, settings)
  const service = assembleService(context, { settings, configuration, metrics, logs })
  const server = await startHttpServer({
    service,
    metrics,
    clock,
    log,
    newId: () => newUuidV7(clock),
    host: settings.WEIR_HTTP_HOST,
    port: settings.WEIR_HTTP_PORT,
    maxInFlight: settings.WEIR_INGEST_MAX_IN_FLIGHT,
    requestTimeoutMs: settings.WEIR_INGEST_REQUEST_TIMEOUT_MS,
  })
  lifecycle.onStop('http', async () => {
    server.turnAway()
    await server.close()
  })
  notReady = () => logs.fault()
}
