/**
 * Events are a contract with receivers: what a release had stays, every type says since when it is
 * there, and something emits it. At a release `node test/db/releases/make.ts` keeps its catalogue.
 */
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { catalogue } from '../../src/api/routes/delivery/events.ts';
import type { Json } from '../../src/kernel/json.ts';
import { EVENT_TYPES } from '../../src/resources/delivery/events.ts';
import { sourcesOf, type Tree, treeOf } from '../tidy/source.ts';
import { emittedIn } from './emitted.ts';
import { breaksOf, type Catalogue } from './event-contract.ts';

const ROOT = join(import.meta.dirname, '../..');
const RELEASES = join(ROOT, 'test/db/releases');
const KEPT = globSync('*/event-types.json', { cwd: RELEASES })
  .map((path) => path.replace(/\/.*/, ''))
  .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));

async function releasedAs(version: string): Promise<Catalogue> {
  return JSON.parse(await readFile(join(RELEASES, version, 'event-types.json'), 'utf8'));
}

describe('The catalogue of events', () => {
  it('The catalogue of every release is kept', async () => {
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    expect(KEPT, 'node test/db/releases/make.ts at a release').toContain(version);
  });

  it.each(KEPT)('Nothing that the events of %s had is gone or changed', async (version) => {
    expect(breaksOf(await releasedAs(version), catalogue(), version)).toEqual([]);
  });

  it('No event has a member of its own with the name of one of a removed body', () => {
    const names = catalogue().flatMap(({ example }) => Object.keys(example.data));
    expect(names.filter((name) => name.startsWith('body_'))).toEqual([]);
  });
});

interface Data {
  [member: string]: Json;
  properties: { [member: string]: Json };
  required: string[];
}

/** A catalogue of one type with a member of each kind, and the schema of its data. */
function sample(): { data: Data; types: Catalogue } {
  const text = { type: 'string' };
  const data: Data = {
    type: 'object',
    properties: {
      addr: text,
      amount: { type: 'string', pattern: '^-?\\d+$' },
      at: { anyOf: [{ type: 'string', format: 'date-time' }, { type: 'null' }] },
      note: { type: ['string', 'null'] },
      state: { type: 'string', enum: ['open', 'closed'] },
      parts: { type: 'array', items: { type: 'object', properties: { n: { type: 'integer' } } } },
    },
    required: ['addr', 'amount', 'at', 'state'],
  };
  const type = { type: 'string', const: 'wallet.observed' };
  const properties = { type, data };
  const schema: Catalogue[number]['schema'] = {
    type: 'object',
    properties,
    required: ['type', 'data'],
  };
  return { data, types: [{ type: 'wallet.observed', since: '0.2.0', schema }] };
}

/** What breaks by a change of the sample's members, or of its data. */
const change = (apply: (members: Data['properties'], data: Data) => void) => {
  const { data, types } = sample();
  apply(data.properties, data);
  return breaksOf(sample().types, types, '0.2.0');
};
const put = (members: object, name: string, value: unknown) =>
  Object.assign(members, { [name]: value });

describe('A later version', () => {
  it.each<[string, Parameters<typeof change>[0], string]>([
    ['removes a member', (m) => delete m.note, 'data.note is gone'],
    ['lets one be absent', (_, d) => put(d, 'required', ['amount', 'at', 'state']), 'addr may be'],
    ['changes a type', (m) => put(m, 'amount', { type: 'integer' }), 'amount was string, and'],
    [
      'lets one be null',
      (m) => put(m, 'addr', { type: ['string', 'null'] }),
      'addr was string, and is string,null',
    ],
    ['lets one be anything', (m) => put(m, 'addr', {}), 'addr was string, and is any'],
    [
      'changes a pattern',
      (m) => put(m, 'amount', { type: 'string', pattern: '^\\d+$' }),
      'amount had the pattern',
    ],
    [
      'changes a format',
      (m) => put(m, 'at', { type: ['string', 'null'] }),
      'at had the format date-time',
    ],
    [
      'removes a value',
      (m) => put(m, 'state', { type: 'string', enum: ['open'] }),
      'state is never closed any more',
    ],
    [
      'changes what a list has',
      (m) => put(m, 'parts', { type: 'array', items: { type: 'object', properties: {} } }),
      'parts[].n is gone',
    ],
    ['closes its schema', (_, d) => put(d, 'additionalProperties', false), 'data is closed'],
  ])('A later version that %s is refused', (_, apply, line) => {
    expect(change(apply)).toEqual([expect.stringContaining(line)]);
  });

  it.each<[string, Parameters<typeof change>[0]]>([
    ['adds a member', (m) => put(m, 'more', { type: 'string' })],
    ['adds a value', (m) => put(m, 'state', { type: 'string', enum: ['open', 'closed', 'x'] })],
    ['never has null any more', (m) => put(m, 'note', { type: 'string' })],
    ['always has a member', (_, d) => put(d, 'required', [...d.required, 'note'])],
  ])('A later version that %s is accepted', (_, apply) => {
    expect(change(apply)).toEqual([]);
  });

  it('A type may be added with a later version, and none may go or move', () => {
    const added = (since: string) => [
      ...sample().types,
      { ...sample().types[0], type: 'wallet.x', since },
    ];
    const breaks = (now: unknown) => breaksOf(sample().types, now as Catalogue, '0.2.0');
    expect(breaks(added('0.10.0'))).toEqual([]);
    expect(breaks(added('0.2.0'))).toEqual(['wallet.x is new, and must be since a later version']);
    expect(breaks([])).toEqual(['wallet.observed is gone']);
    expect(breaks(sample().types.map((each) => ({ ...each, since: '0.3.0' })))).toEqual([
      'wallet.observed is since 0.3.0',
    ]);
  });
});

describe('Emitters of events', () => {
  const tree = treeOf(ROOT);

  it('Every event type is emitted by a file of src', () => {
    const emitted = new Set(emittedIn(tree).flatMap(({ types }) => types));
    expect(EVENT_TYPES.filter((type) => !emitted.has(type))).toEqual([]);
  });

  it('Every event type is named by a test', () => {
    const texts = sourcesOf(tree)
      .filter(({ path }) => path.endsWith('.test.ts') && !path.startsWith('test/resources/'))
      .map(({ text }) => text);
    const isNamed = (type: string) =>
      texts.some((text) => text.includes(`'${type}'`) || text.includes(`'${type} `));
    const unnamed = EVENT_TYPES.filter((type) => !isNamed(type));
    expect(unnamed, 'in no test outside test/resources').toEqual([]);
  });

  it.each([
    ["if (type === 'wallet.observed') return [{ type: 'wallet.vanished' }];", ['wallet.vanished']],
    ["switch (t) { case 'wallet.observed': return { type: t }; }", []],
    ["const words = { 'wallet.observed': 'new' };", []],
    [
      "const to = up ? 'service.recovered' : 'service.unreachable'; return { type: to };",
      ['service.recovered', 'service.unreachable'],
    ],
    [`const s = 'failed'; return { type: \`operation.\${s}\` };`, ['operation.failed']],
  ])('Of %j these types are emitted: %j', (body, types) => {
    const file: Tree = new Map([['src/reconciler/x.ts', `export function x() { ${body} }`]]);
    expect(
      emittedIn(file)
        .flatMap((each) => each.types)
        .sort(),
    ).toEqual(types);
  });

  it('Folders that only show events, and tests, emit none', () => {
    const text = "export const e = { type: 'wallet.observed' };";
    const shown = ['src/console/x.ts', 'src/cli/x.ts', 'src/resources/x.ts', 'test/x.ts'];
    expect(emittedIn(new Map(shown.map((path) => [path, text])))).toEqual([]);
  });
});
