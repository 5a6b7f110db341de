/** What the local stack runs. docker-compose.yml names the same versions; a test compares them. */
export const versions = {
  kafka: '4.4.0',
  apicurio: '3.0.9',
  slf4jSimple: '1.7.36',
  dependencyPlugin: '2.8',
  postgresImage: '18',
  redisImage: '7',
} as const
