/** How the tests run: two workers, and one template database that every test file clones. */
import { defineConfig } from 'vitest/config';

// Workers and the daemons that tests start inherit it; it halves the start of a daemon.
process.env.NODE_COMPILE_CACHE ??= 'node_modules/.cache/compile';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/harness/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    // Generous: a test waits for events, and only a starved machine comes near it.
    testTimeout: 60_000,
    hookTimeout: 90_000,
  },
});
