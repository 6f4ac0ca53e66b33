/** How the tests run: three workers, and one template database that every test file clones. */
import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

// The folder of main.ts, for the workers too.
process.env.NODE_COMPILE_CACHE ??= 'node_modules/.cache/compile';

/** The longest files, which the order by size of a first run would put last. */
const FIRST = /\/test\/(?:promises\/|cli\/|docker\.)/;

class Sequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isFirst = ({ moduleId }: TestSpecification) => FIRST.test(moduleId);
    return [...sorted.filter(isFirst), ...sorted.filter((file) => !isFirst(file))];
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // What needs programs of Debian runs on its server: .ci/run.
    exclude: [
      ...configDefaults.exclude,
      ...(process.env.TEST_DATABASE_URL ? [] : ['test/debian/**']),
    ],
    globalSetup: ['test/harness/global-setup.ts'],
    pool: 'forks',
    // The modules have no state that one file could leave to the next.
    isolate: false,
    // One more than the cores that CI has, because many tests wait for other processes.
    maxWorkers: 3,
    sequence: { sequencer: Sequencer },
    // Generous: a test waits for events, and only a starved machine comes near it.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
