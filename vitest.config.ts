/**
 * The tests in projects, by what they need. `npm run test:unit` runs `unit`, `npm test` also
 * `stages` and `promises`, and CI the two long ones as well.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseSync, type StaticImport } from 'oxc-parser';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

// The folder of main.ts, for the workers too.
process.env.NODE_COMPILE_CACHE ??= 'node_modules/.cache/compile';

const ROOT = import.meta.dirname;

/**
 * What only CI runs: programs of Debian, packages of other registries, a browser, many daemons,
 * restored servers, and long forms of what `stages` has short.
 */
const LONG = [
  'test/api/docs.test.ts',
  'test/cli/{demo,export-hledger,setup}.test.ts',
  'test/cli/import/import.test.ts',
  'test/console/!(console|find|format).test.ts',
  'test/daemon/{clock-steps,delivery-process,generic-errors,master-key}.test.ts',
  'test/daemon/{report-bucket,roles}.test.ts',
  'test/db/{embedded-places,releases,rolling-upgrade}.test.ts',
  'test/docker.test.ts',
  'test/library/{integrate,samples}.test.ts',
  'test/observer/schedule/detection-delay.test.ts',
  'test/promises/{a-restored,a-snapshot,changes-are,one-load,several-daemons}*.test.ts',
  'test/promises/safe-to-kill/{mint,nft-writes,payments,queued-give}.test.ts',
  'test/reconciler/drifts/late.property.test.ts',
  'test/reports/hledger.test.ts',
  'test/sandbox/control/pages.test.ts',
  'test/tools/{contract,observe,outages,simulate}/*.test.ts',
  'test/tools/hostile/kills/kills.test.ts',
];
/** On the server of Debian that TEST_DATABASE_URL names. */
const DEBIAN = ['test/debian/**/*.test.ts'];
/** On the brokers that TEST_BROKERS has and Debian's; see test/brokers/broker.ts. */
const BROKERS = ['test/brokers/**/*.test.ts'];
/** Helm and the schemas of Kubernetes, in the folder that TEST_HELM names. */
const HELM = ['test/helm/**/*.test.ts'];
const runsHere = (path: string) =>
  process.env.TEST_DATABASE_URL || !path.startsWith('test/debian/');
const PROMISES = ['test/promises/**/*.test.ts'];

/** Modules that need a program or a Postgres; a test that imports one is none of `unit`. */
const STARTS = new RegExp(
  '^node:child_process$|/db/(?:connect|embedded/\\w+)\\.ts$|/harness/(?:app|browser|command|' +
    'daemon|database|rig|stages|temporary-server|postgres-programs|replicated-servers)\\.ts$',
);

/** What a file imports beside types, which load nothing. */
function importedBy(path: string): string[] {
  const { module } = parseSync(path, readFileSync(join(ROOT, path), 'utf8'));
  const isType = ({ entries }: StaticImport) =>
    entries.length > 0 && entries.every((e) => e.isType);
  return module.staticImports.filter((one) => !isType(one)).map((one) => one.moduleRequest.value);
}

/** True for a test that neither starts anything nor imports a file of test/ that does. */
function isUnit(path: string, seen = new Set<string>()): boolean {
  if (seen.has(path)) return true;
  seen.add(path);
  const imported = importedBy(path);
  if (imported.some((name) => STARTS.test(name))) return false;
  const ofTests = imported
    .filter((name) => name.startsWith('.'))
    .map((name) => join(dirname(path), name))
    .filter((target) => target.startsWith('test/'));
  return ofTests.every((target) => isUnit(target, seen));
}

const filesOf = (patterns: string[]) => globSync(patterns, { cwd: ROOT });
const brokers = process.env.TEST_BROKERS ? filesOf(BROKERS) : [];
const helm = process.env.TEST_HELM ? filesOf(HELM) : [];
const long = new Set(filesOf([...LONG, ...DEBIAN, ...BROKERS, ...HELM]));
const allPromises = filesOf(PROMISES);
const promises = allPromises.filter((path) => !long.has(path));
const longPromises = allPromises.filter((path) => long.has(path));
const others = filesOf(['test/**/*.test.ts']).filter(
  (path) => !long.has(path) && !allPromises.includes(path),
);
const longOthers = [...long].filter(
  (path) => !allPromises.includes(path) && !/^test\/(?:brokers|helm)\//.test(path),
);
const unit = others.filter((path) => isUnit(path));
const stages = others.filter((path) => !unit.includes(path));

/** The longest files first, which the order by size of a first run would put last. */
const FIRST = /\/test\/(?:cli|console|docker|promises\/safe-to-kill)\b/;

class Sequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isFirst = ({ moduleId }: TestSpecification) => FIRST.test(moduleId);
    return [...sorted.filter(isFirst), ...sorted.filter((file) => !isFirst(file))];
  }
}

const POSTGRES = ['test/harness/global-setup.ts'];

/** @param order projects with a smaller one run before */
const project = (name: string, include: string[], order: number, maxWorkers: number) => ({
  extends: true as const,
  test: {
    name,
    include,
    maxWorkers,
    globalSetup: name === 'unit' ? [] : POSTGRES,
    sequence: { groupOrder: order },
  },
});

export default defineConfig({
  test: {
    pool: 'forks',
    // The modules have no state that one file could leave to the next.
    isolate: false,
    sequence: { sequencer: Sequencer },
    // Generous: a test waits for events, and only a starved machine comes near it.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    projects: [
      project('unit', unit, 1, 2),
      // One more than the cores that CI has, because many tests wait for other processes.
      project('stages', stages, 2, 3),
      // One at a time, because each has whole daemons; the scripts run them beside the others.
      project('promises', promises, 3, 1),
      project('long', longOthers.filter(runsHere), 4, 2),
      project('long-promises', longPromises, 5, 1),
      project('brokers', brokers, 6, 2),
      project('helm', helm, 7, 1),
    ],
  },
});
