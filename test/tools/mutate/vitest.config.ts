/** The tests of the pure rules, which need no Postgres. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: [
      'test/kernel/{log,subset-sums}.test.ts',
      'test/keys/limits-rule.test.ts',
      'test/operations/{conflict-rule,effects,states}.test.ts',
      'test/reconciler/{tokens,unknown,wallets}/{*rule,ending,evidence}.test.ts',
      'test/upstream/outcome.test.ts',
      'test/webhooks/{attempt-result,redaction}.test.ts',
    ],
    setupFiles: ['test/tools/mutate/setup.ts'],
    isolate: false,
    testTimeout: 120_000,
  },
});
