export {
  commonSettings,
  describeSettings,
  flagSetting,
  integerSetting,
  listSetting,
  readSettings,
  secret,
  settingsForLog,
  stageSettings,
} from './settings.ts'
export type { SettingDescription } from './settings.ts'
export { checkConfiguration, loadConfiguration } from './configuration/load-configuration.ts'
export type { ConfigurationSummary, LoadOptions } from './configuration/load-configuration.ts'
export { createLog } from './log.ts'
export type { LogLevel, LogOptions } from './log.ts'
export { createMetrics } from './metrics.ts'
export type { CounterMetric, GaugeMetric, HistogramMetric, LabelValues, Metrics } from './metrics.ts'
export { startAdminServer } from './admin-server.ts'
export type { AdminServer, AdminServerOptions, Health } from './admin-server.ts'
export { createLifecycle } from './lifecycle.ts'
export type { HostProcess, Lifecycle, LifecycleOptions } from './lifecycle.ts'
export { newUuidV7, systemClock } from './clock.ts'
export { childTraceparent, parseTraceparent } from './trace-context.ts'
export type { Traceparent } from './trace-context.ts'
export { runService, startErrorText } from './run-service.ts'
export type { ServiceContext } from './run-service.ts'
export { createFaultPoint } from './fault-point.ts'
export { createStageObserver } from './stage-metrics.ts'
export type { StageMetrics } from './stage-metrics.ts'
export { answerProblems, bearerOf, invalidValue } from './http-problems.ts'
