/**
 * Planted faults of SQL: its places, and who writes which table.
 */
import { type Fault, RULES, STORE } from './fault.ts';

const store = 'use journal/store.ts or a …-store.ts beside it';
export const sql: Fault[] = [
  {
    fault: 'drizzle in a rule',
    path: RULES,
    add: `import type { SQL } from 'drizzle-orm/sql';`,
    finds: `imports drizzle-orm, ${store}`,
  },
  {
    fault: 'a template of SQL in a rule',
    path: RULES,
    add: 'export const due = (sql: typeof String.raw) => sql`now()`;',
    finds: `holds SQL, ${store}`,
  },
  {
    fault: 'a statement under another tag',
    path: RULES,
    add: 'export const due = (tx: typeof String.raw) => tx`select 1`;',
    finds: `holds SQL, ${store}`,
  },
  {
    fault: 'a distinct query built in a rule',
    path: RULES,
    add: 'export const due = (tx: Reader) => tx.selectDistinct({ id: 1 }).from(1);',
    finds: `builds a query, ${store}`,
  },
  {
    fault: 'a statement in a plain text',
    path: RULES,
    add: `export const due = 'select id from tallyhook.operations limit 1';`,
    finds: `holds SQL, ${store}`,
  },
  {
    fault: 'a query built in a rule',
    path: RULES,
    add: 'export const due = (tx: Reader) => tx.select({ id: 1 }).from(1);\ntype Reader = never;',
    finds: `builds a query, ${store}`,
  },
];

export const writers: Fault[] = [
  {
    fault: 'an insert by another folder',
    path: STORE,
    add: 'export const steal = sql`insert into tallyhook.keys (id) values (1)`;',
    finds: 'writes keys, a table of keys, use keys/keys.ts',
  },
  {
    fault: 'an update by another folder, through an imported table',
    path: 'src/ledger/store.ts',
    add: `import { operations as theirs } from '../journal/tables.ts';
export const steal = (tx: { update(x: unknown): void }) => tx.update(theirs);`,
    below: 1,
    finds: 'writes operations, a table of journal, use journal/journal.ts',
  },
  {
    fault: 'a delete by another folder, through a name its door hands on',
    path: 'src/ledger/store.ts',
    add: `import { written } from '../journal/journal.ts';
export const steal = (sql: typeof String.raw) => sql\`
  delete from \${written}\`;`,
    below: 2,
    finds: 'writes operations, a table of journal, use journal/journal.ts',
  },
  {
    fault: 'a truncate of a second table in a text without a tag',
    path: STORE,
    add: `export const wipe = 'truncate tallyhook.operations, tallyhook.events';`,
    finds: 'writes events, a table of outbox, use outbox/outbox.ts',
  },
  {
    fault: 'a merge by another folder, its name quoted',
    path: STORE,
    add: 'export const steal = sql`merge into "tallyhook"."entries" using x on true`;',
    finds: 'writes entries, a table of ledger, use ledger/ledger.ts',
  },
  {
    fault: 'a write without the name of the schema',
    path: STORE,
    add: 'export const steal = sql`with x as (select 1) update entries e set id = 1`;',
    finds: 'writes entries, a table of ledger, use ledger/ledger.ts',
  },
  {
    fault: 'a write of an imported table in a text without a tag',
    path: 'src/reports/reports.ts',
    add: `export const mend = (sql: Raw) => sql.unsafe(\`delete from \${operations}\`);`,
    finds: 'writes operations, a table of journal, use journal/journal.ts',
  },
  {
    fault: 'a write by reports of a table of a stage',
    path: 'src/reports/reports.ts',
    add: `export const mend = sql\`delete from \${operations}\`;`,
    finds: 'writes operations, a table of journal, use journal/journal.ts',
  },
  {
    fault: 'a table without an owner',
    path: STORE,
    add: 'export const stray = sql`update tallyhook.loose set id = 1`;',
    finds: 'writes loose, which has no owner, use a table that a tables.ts defines',
  },
  {
    fault: 'a table whose name is computed',
    path: STORE,
    add: `export const any = (name: string) => sql\`insert into tallyhook.\${sql.raw(name)}\`;`,
    finds: 'writes a table whose name is computed, use its own name',
  },
  {
    fault: 'a table spelled in a hole',
    path: STORE,
    add: `export const any = sql\`insert into \${sql.raw('tallyhook.keys')} values (1)\`;`,
    finds: 'writes keys, a table of keys, use keys/keys.ts',
  },
  {
    fault: 'a write of its own table outside a store',
    path: RULES,
    add: `import { operations } from './tables.ts';
export const set = (tx: { update(x: unknown): void }) => tx.update(operations);`,
    below: 1,
    finds: 'writes operations outside a store, use journal/store.ts',
  },
  {
    fault: 'a table defined outside tables.ts',
    path: STORE,
    add: `export const loose = tables.tallyhook.table('loose', {});`,
    finds: 'defines loose, use journal/tables.ts',
  },
  {
    fault: 'a table defined by two folders',
    path: 'src/ledger/tables.ts',
    add: `export const again = tallyhook.table('keys', {});`,
    finds: 'defines keys again, use the one of keys',
  },
];
