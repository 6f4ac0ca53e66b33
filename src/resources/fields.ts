/**
 * The fields of what people and programs see. A field says what a value is, how a row of the
 * database has it and how it is shown; schemas, tables of every kind and types derive from it.
 * Plain data: the browser and the commands load it as it is.
 */
import type { IdPrefix, Instant, Json } from '../kernel/values.ts';

/** What a value is. Rows have amounts as bigint and instants as epoch milliseconds. */
export type Kind =
  | 'address' // 42 characters, as first written
  | 'amount' // a whole number of any size; shown as decimal text
  | 'count' // a whole number that a double holds
  | 'digits' // a number of any size that names something; shown as decimal text
  | 'flag'
  | 'hash'
  | 'id'
  | 'instant' // shown as RFC 3339 UTC with milliseconds
  | 'json' // any document
  | 'list'
  | 'number'
  | 'object'
  | 'one-of' // one of the values
  | 'text';

export interface Field<Row = never, Shown = unknown> {
  readonly kind: Kind;
  /** One sentence, without a full stop. */
  readonly description?: string;
  /** The head of its column; by default the name in words. */
  readonly title?: string;
  readonly unit?: 'ms' | 's' | 'bytes';
  readonly isNullable?: boolean;
  readonly isOptional?: boolean;
  /** Of `one-of`. */
  readonly values?: readonly string[];
  /** Of an `id`. */
  readonly prefix?: IdPrefix;
  /** Of a `list`: its items; of an `object` without names for its members: each of them. */
  readonly items?: Field<never, unknown>;
  /** Of an `object`: its own fields. */
  readonly fields?: Fields;
  /** Of an `object`: its name in the API's document, if it has one there. */
  readonly name?: string;
  /** Of an `object`: it may have further members. */
  readonly isOpen?: boolean;
  /** Of an `object`: the row has it as it is shown, such as a jsonb document. */
  readonly isDocument?: boolean;
  /** The least that a `count` may be. */
  readonly min?: number;
  /** The greatest length of a text in requests. */
  readonly max?: number;
  /** As it is shown; see `example.ts`. */
  readonly example?: unknown;
  /** Only for types: neither is ever set. */
  readonly types?: (row: Row) => Shown;
}

export type Fields = { readonly [name: string]: Field<never, unknown> };

type Camel<S extends string> = S extends `${infer A}_${infer B}`
  ? `${A}${Capitalize<Camel<B>>}`
  : S;
type RowValue<F> = F extends Field<infer Row, unknown> ? Row : never;
type ShownValue<F> = F extends Field<never, infer Shown> ? Shown : never;
type Flat<T> = { [K in keyof T]: T[K] };
type OptionalNames<F extends Fields> = {
  [K in keyof F]: F[K] extends { isOptional: true } ? K : never;
}[keyof F];

/** The row of such fields as the database's driver gives it: names in camel case. */
export type RowOf<F extends Fields> = Flat<
  { [K in Exclude<keyof F & string, OptionalNames<F>> as Camel<K>]: RowValue<F[K]> } & {
    [K in OptionalNames<F> & string as Camel<K>]?: RowValue<F[K]>;
  }
>;
/** What is shown of it: JSON with the contract's names. */
export type ShownOf<F extends Fields> = Flat<
  { [K in Exclude<keyof F, OptionalNames<F>>]: ShownValue<F[K]> } & {
    [K in OptionalNames<F>]?: ShownValue<F[K]>;
  }
>;

type More = Pick<Field, 'title' | 'unit' | 'min' | 'max' | 'example'>;

/** A kind of field; its description and more are the arguments. */
function of<Row, Shown = Row>(kind: Kind) {
  return (description?: string, more: More = {}): Field<Row, Shown> => ({
    kind,
    ...(description === undefined ? {} : { description }),
    ...more,
  });
}

export const address = of<string>('address');
export const amount = of<bigint, string>('amount');
export const count = of<number>('count');
export const digits = of<bigint, string>('digits');
export const flag = of<boolean>('flag');
export const hash = of<string>('hash');
export const instant = of<Instant, string>('instant');
export const json = of<Json>('json');
export const number = of<number>('number');
export const text = of<string>('text');

export function id(prefix: IdPrefix, description?: string, more: More = {}): Field<string, string> {
  return { ...text(description, more), kind: 'id', prefix };
}

export function oneOf<const V extends string>(
  values: readonly V[],
  description?: string,
  more: More = {},
): Field<V, V> {
  return { ...of<V>('one-of')(description, more), values };
}

export function nullable<Row, Shown>(
  field: Field<Row, Shown>,
): Field<Row | null, Shown | null> & { isNullable: true } {
  return { ...(field as Field<Row | null, Shown | null>), isNullable: true };
}

/** Left out where it says nothing. */
export function optional<Row, Shown>(
  field: Field<Row, Shown>,
): Field<Row | undefined, Shown> & { isOptional: true } {
  return { ...(field as Field<Row | undefined, Shown>), isOptional: true };
}

export function list<Row, Shown>(
  items: Field<Row, Shown>,
  description?: string,
  more: More = {},
): Field<readonly Row[], Shown[]> {
  return { ...(text(description, more) as object), kind: 'list', items } as Field<
    readonly Row[],
    Shown[]
  >;
}

/** A document that is stored as it is shown. */
export function document<F extends Fields>(
  fields: F,
  description?: string,
): Field<ShownOf<F>, ShownOf<F>> {
  return { ...(text(description) as object), kind: 'object', fields, isDocument: true } as Field<
    ShownOf<F>,
    ShownOf<F>
  >;
}

/** Any members, such as evidence. */
export function record(
  description?: string,
  more: More = {},
): Field<Record<string, unknown>, Record<string, unknown>> {
  const own = of<Record<string, unknown>>('object')(description, more);
  return { ...own, fields: {}, isOpen: true, isDocument: true };
}

/** Members of one kind by names that are data, stored as they are shown. */
export function byName<Shown>(
  items: Field<never, Shown>,
  description?: string,
  more: More = {},
): Field<{ readonly [name: string]: Shown }, { [name: string]: Shown }> {
  return {
    ...(text(description, more) as object),
    kind: 'object',
    items,
    isDocument: true,
  } as Field<{ readonly [name: string]: Shown }, { [name: string]: Shown }>;
}

interface Named<F> {
  fields: F;
  name?: string;
  isOpen?: boolean;
}

/** Fields of their own, or those of a resource. */
export function object<F extends Fields>(
  of: F | { name: string; fields: F; isOpen?: boolean },
  description?: string,
  more: More = {},
): Field<RowOf<F>, ShownOf<F>> {
  const own = text(description, more) as object;
  const isResource = 'fields' in of && typeof of.name === 'string';
  const { fields, name, isOpen } = isResource ? (of as Named<F>) : ({ fields: of } as Named<F>);
  return { ...own, kind: 'object', name, fields, isOpen, isDocument: isOpen } as Field<
    RowOf<F>,
    ShownOf<F>
  >;
}

/** Some of these fields. */
export function only<F extends Fields, K extends keyof F & string>(
  fields: F,
  ...names: K[]
): Pick<F, K> {
  return Object.fromEntries(names.map((name) => [name, fields[name]])) as Pick<F, K>;
}

/** `suspected_at` as the database's driver names it. */
export function camelOf(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** `suspected_at` in words: `Suspected at`. */
export function titleOf(name: string, { title }: Pick<Field, 'title'>): string {
  const words = name.replace(/[_.]/g, ' ');
  return title ?? words.charAt(0).toUpperCase() + words.slice(1);
}

/** Those of these fields that are given, named as in rows. */
export function givenOf<F extends Fields>(
  fields: F,
  values: { [K in keyof F]?: unknown },
): Partial<RowOf<F>> {
  const given = Object.keys(fields).filter((name) => values[name] !== undefined);
  return Object.fromEntries(given.map((name) => [camelOf(name), values[name]])) as Partial<
    RowOf<F>
  >;
}
