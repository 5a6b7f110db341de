// A running Weir on a given stack: prepared, with its services as child processes that can be killed and started again.
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Log } from '@weir/core'
import { answersOk, freePorts, step, Supervisor, waitUntil, type Progress, type StackUrls } from '@weir/ops'
import type { ServiceRole } from '@weir/postgres'
import { loadConfiguration } from '@weir/runtime'
import { ensureDatabase, prepare } from './prepare.ts'
import type { LocalSecrets } from './secrets.ts'

export type ServiceName = 'ingest' | 'dedup' | 'policy' | 'audit-sink'
export const serviceNames: readonly ServiceName[] = ['ingest', 'dedup', 'policy', 'audit-sink']

export interface SystemOptions {
  readonly urls: StackUrls
  /** Folder for logs, pid files and secrets. */
  readonly stateDir: string
  readonly configFile: string
  readonly secrets: LocalSecrets
  /** Name of the database, created when missing. */
  readonly database: string
  readonly topicPrefix: string
  readonly partitions: number
  readonly progress: Progress
  readonly log: Log
  /** Fixed HTTP ports; else free ones. */
  readonly ports?: Partial<Record<ServiceName, number>>
  /** More environment for every service. */
  readonly env?: Readonly<Record<string, string>>
}

export interface InstanceOptions {
  /** Name of the process; a second instance needs one of its own. Default: the service's name. */
  readonly instance?: string
  readonly env?: Readonly<Record<string, string>>
  /** Wait until it says that it is ready. Default true. */
  readonly untilReady?: boolean
}

export interface Instance {
  readonly name: string
  readonly service: ServiceName
  readonly httpUrl: string
  readonly adminUrl: string
}

const checkout = fileURLToPath(new URL('../../../', import.meta.url))
const roleOf: Record<ServiceName, ServiceRole> = {
  ingest: 'ingest',
  dedup: 'dedup',
  policy: 'policy',
  'audit-sink': 'audit_sink',
}

export class System {
  readonly options: SystemOptions
  readonly supervisor: Supervisor
  /** Administrator's URL of this system's database. */
  readonly adminUrl: string
  readonly logins: Readonly<Record<ServiceRole, string>>
  readonly #instances = new Map<string, Instance>()

  private constructor(
    options: SystemOptions,
    prepared: { readonly adminUrl: string; readonly logins: Record<ServiceRole, string> },
  ) {
    this.options = options
    this.adminUrl = prepared.adminUrl
    this.logins = prepared.logins
    this.supervisor = new Supervisor(join(options.stateDir, 'services'))
  }

  /** Prepares database, schemas and topics. Starts no service yet. */
  static async prepare(options: SystemOptions): Promise<System> {
    const { urls, secrets, topicPrefix, partitions, log } = options
    const configuration = await loadConfiguration(options.configFile, secrets.environment)
    const adminUrl = await ensureDatabase(urls.DATABASE_URL, options.database)
    const logins = await step(options.progress, 'preparing database, schemas and topics', () =>
      prepare({
        kafkaBrokers: urls.WEIR_KAFKA_BROKERS.split(','),
        schemaRegistryUrl: urls.WEIR_SCHEMA_REGISTRY_URL,
        adminUrl,
        topicPrefix,
        partitions,
        replicationFactor: 1,
        minInsyncReplicas: 1,
        passwords: secrets.passwords,
        configuration,
        log,
      }),
    )
    const system = new System(options, { adminUrl, logins })
    await system.supervisor.stopAll()
    return system
  }

  /** Starts these services (default all that exist) at once and waits until each is ready. */
  async startServices(services: readonly ServiceName[] = serviceNames): Promise<void> {
    await step(this.options.progress, `starting ${services.join(', ')}`, async () => {
      await Promise.all(services.map(service => this.start(service)))
    })
  }

  async start(service: ServiceName, options: InstanceOptions = {}): Promise<Instance> {
    const name = options.instance ?? service
    const known = this.#instances.get(name)
    const [freeHttp = 0, adminPort = 0] = await freePorts(2)
    const httpPort =
      known === undefined ? (this.options.ports?.[service] ?? freeHttp) : Number(new URL(known.httpUrl).port)
    const instance: Instance = {
      name,
      service,
      httpUrl: `http://127.0.0.1:${httpPort}`,
      adminUrl: `http://127.0.0.1:${adminPort}`,
    }
    this.#instances.set(name, instance)
    this.supervisor.start({
      name,
      command: process.execPath,
      args: [
        ...process.execArgv.filter(arg => arg.includes('strip-types')),
        join('services', service, 'src', 'main.ts'),
      ],
      cwd: checkout,
      env: { ...this.#environment(service, name, httpPort, adminPort), ...options.env },
      stopWithinMs: 25_000,
    })
    if (options.untilReady !== false) await this.ready(name)
    return instance
  }

  async ready(name: string, withinMs = 90_000): Promise<void> {
    const { adminUrl } = this.instance(name)
    await waitUntil(() => answersOk(`${adminUrl}/readyz`), {
      what: `${name} (${adminUrl}/readyz)`,
      withinMs,
      givenUp: () => this.supervisor.ended(name),
    })
  }

  instance(name: string): Instance {
    const instance = this.#instances.get(name)
    if (instance === undefined) throw new TypeError(`there is no instance ${name}`)
    return instance
  }

  /** Instances that were started, whether they still run or not. */
  instances(): readonly Instance[] {
    return [...this.#instances.values()]
  }

  /** SIGKILL, and waits until the process is gone. */
  async kill(name: string): Promise<void> {
    this.supervisor.signal(name, 'SIGKILL')
    await this.supervisor.gone(name, 10_000)
  }

  async stop(): Promise<void> {
    await this.supervisor.stopAll()
  }

  /** Lets the services live on when this process ends. */
  release(): void {
    this.supervisor.release()
  }

  #environment(service: ServiceName, name: string, httpPort: number, adminPort: number): Record<string, string> {
    const { urls, topicPrefix, partitions, configFile, secrets, env } = this.options
    return {
      ...urls,
      ...secrets.environment,
      DATABASE_URL: this.logins[roleOf[service]],
      ...(service === 'audit-sink' ? { WEIR_AUDIT_READER_DATABASE_URL: this.logins.audit_reader } : {}),
      WEIR_TOPIC_PREFIX: topicPrefix,
      WEIR_TOPIC_PARTITIONS: String(partitions),
      WEIR_CONFIG: configFile,
      WEIR_INSTANCE_ID: name,
      WEIR_HTTP_HOST: '127.0.0.1',
      WEIR_HTTP_PORT: String(httpPort),
      WEIR_ADMIN_HOST: '127.0.0.1',
      WEIR_ADMIN_PORT: String(adminPort),
      ...env,
    }
  }
}
