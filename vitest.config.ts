import { defineConfig } from 'vitest/config'

const roots = '{schemas,packages,services,ops,test,bench}'
const skip = ['**/node_modules/**', '**/.weir/**']

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: [`${roots}/**/*.test.ts`],
          exclude: [...skip, '**/*.int.test.ts', '**/*.e2e.test.ts'],
          isolate: false,
          // Some start processes, beside the other checks on few cores.
          testTimeout: 20_000,
        },
      },
      {
        test: {
          name: 'integration',
          include: [`${roots}/**/*.int.test.ts`],
          exclude: skip,
          fileParallelism: false,
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.e2e.test.ts'],
          exclude: skip,
          fileParallelism: false,
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      },
    ],
  },
})
