/**
 * Planted faults of imports: direction, doors, libraries, files that nobody or everybody needs.
 */
import { type Fault, RULES } from './fault.ts';

const row = (words: string) => `use an argument or its row: ${words}`;
const journalRow = row('kernel db outbox upstream/types');
const stage = (rows: string) => row(`kernel ${rows}`);

export const direction: Fault[] = [
  {
    fault: 'a stage that imports a later one',
    path: RULES,
    add: `import type { deliver } from '../webhooks/webhooks.ts';`,
    finds: `journal imports webhooks, ${journalRow}`,
  },
  {
    fault: 'a type query of a later stage',
    path: RULES,
    add: `export type Deliver = typeof import('../webhooks/webhooks.ts').deliver;`,
    finds: `journal imports webhooks, ${journalRow}`,
  },
  {
    fault: 'a later stage handed on',
    path: RULES,
    add: `export type { deliver } from '../webhooks/webhooks.ts';`,
    finds: `journal imports webhooks, ${journalRow}`,
  },
  {
    fault: 'a later stage handed on whole',
    path: RULES,
    add: `export type * from '../webhooks/webhooks.ts';`,
    finds: `journal imports webhooks, ${journalRow}`,
  },
  {
    fault: 'a later stage imported late',
    path: RULES,
    add: `export const late = () => import('../webhooks/webhooks.ts');`,
    finds: `journal imports webhooks, ${journalRow}`,
  },
  {
    fault: 'an import of a computed name',
    path: RULES,
    add: `export const late = (name: string) => import(name);`,
    finds: 'imports a file by another name, use its relative path',
  },
  {
    fault: 'an import of our own package',
    path: RULES,
    add: `import type { start } from 'tallyhook/src/main.ts';`,
    finds: 'imports a file by another name, use its relative path',
  },
  {
    fault: 'upstream imported as a value where only its types are open',
    path: RULES,
    add: `export { makeService } from '../upstream/upstream.ts';`,
    finds: 'imports upstream as a value, use import type',
  },
  {
    fault: 'a kernel that imports a stage',
    path: 'src/kernel/json.ts',
    add: `import type { Event } from '../outbox/events.ts';`,
    finds: `kernel imports outbox, ${row('kernel')}`,
  },
  {
    fault: 'a stage that imports the daemon',
    path: 'src/webhooks/webhooks.ts',
    add: `import type { start } from '../daemon/daemon.ts';`,
    finds: `webhooks imports daemon, ${stage('db outbox')}`,
  },
  {
    fault: 'pages that import the API',
    path: 'src/console/console.ts',
    add: `import type { app } from '../api/api.ts';`,
    finds: `console imports api, ${stage('db keys */door')}`,
  },
  {
    fault: 'an API that starts the sandbox',
    path: 'src/api/api.ts',
    add: `import type { chain } from '../sandbox/sandbox.ts';`,
    finds: `api imports sandbox, ${stage('db keys */door')}`,
  },
  {
    fault: 'a sandbox that leaves its island',
    path: 'src/sandbox/sandbox.ts',
    add: `import type { Service } from '../upstream/upstream.ts';`,
    finds: `sandbox imports upstream, ${row('kernel')}`,
  },
  {
    fault: 'an entry that wires a stage itself',
    path: 'src/main.ts',
    add: `import type { app } from './api/api.ts';`,
    finds: `main imports api, ${stage('daemon')}`,
  },
  {
    fault: 'a command that imports the entry',
    path: 'src/cli/tallyhook.ts',
    add: `import type { nothing } from '../main.ts';`,
    finds: `cli imports main, ${stage('db keys * gateway api console daemon sandbox')}`,
  },
  {
    fault: 'src that imports a test',
    path: RULES,
    add: `import type { until } from '../../test/harness/deadline.ts';`,
    finds: 'src imports a test, use a file of src',
  },
  {
    fault: 'a folder without a row',
    path: 'src/detector/tables.ts',
    add: '/** Tables. */',
    finds: 'detector has no row in MAY_IMPORT, use a folder that has one',
  },
];

export const deps: Fault[] = [
  {
    fault: 'an import past a door',
    path: 'src/ledger/ledger.ts',
    add: `import type { Instant } from '../journal/instants.ts';`,
    finds: 'reaches into journal/instants.ts, use journal/journal.ts or journal/tables.ts',
  },
  {
    fault: 'an import past the door of outbox',
    path: 'src/daemon/daemon.ts',
    add: `import type { emit } from '../outbox/store.ts';`,
    finds:
      'reaches into outbox/store.ts, use outbox/outbox.ts or outbox/tables.ts or outbox/events.ts',
  },
  {
    fault: 'the inside of the embedded server imported by the daemon',
    path: 'src/daemon/daemon.ts',
    add: `import type { start as begin } from '../db/embedded-process.ts';`,
    finds: 'reaches into db/embedded-process.ts, use db/embedded.ts',
  },
  {
    fault: 'reports that use the door of a stage',
    path: 'src/reports/reports.ts',
    add: `import type { run } from '../journal/journal.ts';`,
    finds: 'reaches into journal/journal.ts, use journal/tables.ts',
  },
  {
    fault: 'an API that reads the tables of a stage',
    path: 'src/api/api.ts',
    add: `import type { operations } from '../journal/tables.ts';`,
    finds: 'reaches into journal/tables.ts, use journal/journal.ts',
  },
];

export const libraries: Fault[] = [
  ['pino', 'kernel/log.ts'],
  ['prom-client', 'kernel/metrics.ts'],
  ['node-cron', 'a schedule of daemon/'],
  ['undici', 'the door of upstream/, or a function given as an argument'],
  ['postgres', 'db/'],
  ['commander', 'a command of cli/'],
  ['yaml', 'the Config that daemon/ read'],
  ['@hono/node-server', 'a Hono app that daemon/ serves'],
  ['standardwebhooks', 'the signing of webhooks/'],
  ['node:timers', 'pause or after of kernel/clock.ts'],
  ['node:process', 'the global, where it is allowed'],
].map(([library, use]) => ({
  fault: `another importer of ${library}`,
  path: RULES,
  add: `import type { Any } from '${library}${library === 'undici' ? '/types' : ''}';`,
  finds: `imports ${library}, use ${use}`,
}));

export const dead: Fault[] = [
  {
    fault: 'a file that nobody imports',
    path: 'src/journal/forgotten.ts',
    add: '/** Forgotten. */',
    finds: 'no entry reaches it, use it or delete it',
  },
  {
    fault: 'a file that only a test imports',
    path: 'test/journal/journal.test.ts',
    add: `import { forgotten } from '../../src/journal/forgotten.ts';`,
    also: { 'src/journal/forgotten.ts': '/** Forgotten. */' },
    at: 'src/journal/forgotten.ts:1',
    finds: 'no entry reaches it, use it or delete it',
  },
];

export const rings: Fault[] = [
  {
    fault: 'two files that need each other',
    path: 'src/journal/instants.ts',
    add: `import { isFinal } from './rules.ts';`,
    finds:
      'imports itself by journal/instants.ts → journal/rules.ts → journal/instants.ts, ' +
      'use an argument or a third file',
  },
  {
    fault: 'a ring of three files, one of them imported late',
    path: 'src/journal/instants.ts',
    add: `export const late = () => import('./journal.ts');`,
    finds:
      'imports itself by journal/instants.ts → journal/journal.ts → journal/rules.ts → ' +
      'journal/instants.ts, use an argument or a third file',
  },
  {
    fault: 'a file that imports itself',
    path: 'src/journal/instants.ts',
    add: `export * from './instants.ts';`,
    finds:
      'imports itself by journal/instants.ts → journal/instants.ts, ' +
      'use an argument or a third file',
  },
];
