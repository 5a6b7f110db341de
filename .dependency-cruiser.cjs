// Who may import whom. Deny by default: an edge that no line below allows is an error.
// test/import-rule.int.test.ts writes bad imports and expects this list to refuse them.
const contracts = '^(schemas|packages/core)/src'
const node = { dependencyTypes: ['core'] }
const hash = { path: '^(node:)?crypto$', dependencyTypes: ['core'] }
const npm = { path: 'node_modules' }
const edges = (from, ...tos) => tos.map(to => ({ from, to: typeof to === 'string' ? { path: to } : to }))
const prod = path => ({ path, pathNot: '\\.test\\.ts$' })

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'kafkajs-only-in-packages-kafka',
      severity: 'error',
      from: { pathNot: '^(packages/kafka|test|bench)/' },
      to: { path: 'node_modules/(kafkajs|@kafkajs)' },
    },
    {
      name: 'pg-only-in-packages-postgres',
      severity: 'error',
      from: { pathNot: '^(packages/postgres|test|bench)/' },
      to: { path: 'node_modules/(pg|pg-copy-streams|@types/pg)/' },
    },
  ],
  allowed: [
    ...edges(prod('^schemas/src'), '^schemas/src'),
    ...edges({ path: '^schemas/tools/' }, '^schemas/', npm, node),
    ...edges(prod('^packages/core/src'), contracts, hash),
    ...edges(prod('^packages/(runtime|kafka|postgres)/src'), '^packages/$1/', contracts, npm, node),
    ...edges({ path: '^packages/(runtime|postgres)/tools/' }, '^packages/$1/', contracts, npm, node),
    ...edges(
      prod('^packages/client/src'),
      '^packages/client/src',
      contracts,
      '^packages/kafka/src/index\\.ts$',
      npm,
      node,
    ),
    ...edges(
      prod('^packages/cli/src'),
      '^packages/cli/src',
      '^(schemas|packages|ops)/.*/?index\\.ts$',
      '^(schemas|packages)/[^/]+/src/index\\.ts$',
      '^ops/src/index\\.ts$',
      npm,
      node,
    ),
    ...edges(
      prod('^packages/system/src'),
      '^packages/system/src',
      '^(schemas|packages/[^/]+|ops)/src/index\\.ts$',
      npm,
      node,
    ),
    ...edges(prod('^ops/'), '^ops/', contracts, npm, node),
    ...edges(
      prod('^services/([^/]+)/src/(domain/|ports\\.ts)'),
      '^services/$1/src/(domain/|ports\\.ts)',
      contracts,
      hash,
    ),
    ...edges(
      prod('^services/([^/]+)/src/service(\\.ts|/)'),
      '^services/$1/src/(domain/|service/|ports\\.ts|metrics\\.ts)',
      contracts,
    ),
    ...edges(
      prod('^services/([^/]+)/src/(adapters/|main|index|config|metrics)'),
      '^services/$1/src/',
      '^(schemas|packages)/[^/]*/?src/index\\.ts$',
      npm,
      node,
    ),
    ...edges(
      { path: '^(services/[^/]+|packages/[^/]+|schemas|ops)/.*\\.test\\.ts$' },
      '^$1/',
      '^(schemas|packages|ops|test/(contracts|support|fixtures))/',
      npm,
      node,
    ),
    ...edges(
      { path: '^(test|bench)/' },
      '^(test|bench|schemas|packages|ops)/',
      '^services/[^/]+/src/index\\.ts$',
      npm,
      node,
    ),
  ],
  allowedSeverity: 'error',
  options: {
    parser: 'swc',
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '\\.weir/' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default'],
      extensions: ['.ts', '.js', '.json'],
    },
  },
}
