/**
 * What a later version may change of its events, as docs/apps.md says it: types, members and values
 * may be added. Compares two catalogues, as `/api/event-types` has them. Pure.
 */
import type { catalogue } from '../../src/api/routes/delivery/events.ts';

export type Catalogue = Pick<ReturnType<typeof catalogue>[number], 'type' | 'since' | 'schema'>[];

/** The part of JSON Schema that the catalogue uses. */
interface Schema {
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  format?: string;
  pattern?: string;
  minimum?: number;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: Schema | boolean;
}

/**
 * What would break a receiver that was written for an earlier version, a line each.
 * @param released the version of `then`
 */
export function breaksOf(then: Catalogue, now: Catalogue, released: string): string[] {
  const present = new Map(now.map((each) => [each.type as string, each]));
  const known = new Set(then.map(({ type }) => type));
  const kept = then.flatMap((before) => {
    const after = present.get(before.type);
    if (!after) return [`${before.type} is gone`];
    const moved = after.since === before.since ? [] : [`${before.type} is since ${after.since}`];
    return [...moved, ...changes(before.schema as Schema, after.schema as Schema, before.type)];
  });
  const early = now.filter(({ type, since }) => !known.has(type) && !isLater(since, released));
  return [...kept, ...early.map(({ type }) => `${type} is new, and must be since a later version`)];
}

function isLater(version: string, than: string): boolean {
  return version.localeCompare(than, 'en', { numeric: true }) > 0;
}

function changes(then: Schema, now: Schema, at: string): string[] {
  const [before, after] = [alternativesOf(then), alternativesOf(now)];
  const widened = [...after.types].filter((type) => !before.types.has(type));
  const lost = [...before.types].filter((type) => type !== 'null' && !after.types.has(type));
  if (widened.length + lost.length > 0)
    return [`${at} was ${[...before.types]}, and is ${[...after.types]}`];
  return [
    ...valueChanges(before.schema, after.schema, at),
    ...memberChanges(before.schema, after.schema, at),
  ];
}

/** The types of a value, and the schema of what is not null. */
function alternativesOf(schema: Schema): { types: Set<string>; schema: Schema } {
  const all = schema.anyOf ?? [schema];
  const types = all.flatMap(({ type }) => type ?? 'any');
  return { types: new Set(types), schema: all.find(({ type }) => type !== 'null') ?? {} };
}

function valueChanges(then: Schema, now: Schema, at: string): string[] {
  const fixed = (['const', 'format', 'pattern', 'minimum'] as const).filter(
    (name) => then[name] !== undefined && then[name] !== now[name],
  );
  const values = now.enum ?? (now.const === undefined ? undefined : [now.const]);
  const gone = (then.enum ?? []).filter((value) => !values?.includes(value));
  return [
    ...fixed.map((name) => `${at} had the ${name} ${then[name]}, and has ${now[name]}`),
    ...gone.map((value) => `${at} is never ${value} any more`),
  ];
}

function memberChanges(then: Schema, now: Schema, at: string): string[] {
  const members = Object.entries(then.properties ?? {}).flatMap(([name, before]) => {
    const after = now.properties?.[name];
    const path = `${at}.${name}`;
    if (!after) return [`${path} is gone`];
    const isLess = then.required?.includes(name) && !now.required?.includes(name);
    return [...(isLess ? [`${path} may be absent`] : []), ...changes(before, after, path)];
  });
  const items = then.items ? changes(then.items, now.items ?? {}, `${at}[]`) : [];
  const closed = now.additionalProperties === false ? [`${at} is closed to new members`] : [];
  return [...members, ...items, ...closed];
}
