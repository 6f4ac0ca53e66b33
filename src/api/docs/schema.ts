/** What a JSON Schema of the API's document says, in words and rows for readers. Pure. */

/** The part of JSON Schema that the document uses. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  description?: string;
  enum?: (string | number | boolean | null)[];
  format?: string;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  maxItems?: number;
  default?: unknown;
  example?: unknown;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
}

export interface Field {
  /** With the names around it: `evidence.at`, `lines[].amount`. */
  name: string;
  /** Words, and names of schemas of the document. */
  type: (string | { schema: string })[];
  isRequired: boolean;
  /** Bounds, the default, and what the description says. */
  notes: string[];
}

/** The fields of an object, those of inline objects after them; none of anything else. */
export function fieldsOf(schema: Schema, prefix = ''): Field[] {
  const parts = schema.allOf ?? [];
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const path = `${prefix}${name}`;
    const isRequired = schema.required?.includes(name) ?? false;
    const row = { name: path, type: typeOf(field), isRequired, notes: notesOf(field) };
    const inner = field.type === 'array' ? field.items : field;
    const end = field.type === 'array' ? '[].' : '.';
    return [row, ...(inner && !inner.$ref ? fieldsOf(inner, path + end) : [])];
  });
  return [...parts.flatMap((part) => fieldsOf(part, prefix)), ...own];
}

/** The objects of which a value is one, or an item of the list; a single one as a rule. */
export function alternativesOf(schema: Schema): Schema[] {
  const choices = (schema.anyOf ?? schema.oneOf ?? []).filter(isObject);
  return choices.length > 0 ? choices.flatMap(alternativesOf) : [schema];
}

function isObject({ type, properties, anyOf, oneOf, allOf, $ref }: Schema): boolean {
  return type === 'object' || Boolean(properties ?? anyOf ?? oneOf ?? allOf ?? $ref);
}

function nameOf(ref: string): string {
  return ref.slice(ref.lastIndexOf('/') + 1);
}

/** The type in words. */
export function typeOf(schema: Schema): Field['type'] {
  const { $ref, allOf, items, additionalProperties, format, pattern } = schema;
  if ($ref) return [{ schema: nameOf($ref) }];
  const choices = schema.anyOf ?? schema.oneOf ?? allOf?.filter((part) => part.$ref);
  if (choices?.length)
    return choices.flatMap((one, n) =>
      (n === 0 ? [] : [joinOf(allOf)]).concat(typeOf(one) as string[]),
    );
  if (schema.enum) return [schema.enum.map(String).join(' | ')];
  const types = [schema.type ?? 'any value'].flat();
  if (types.includes('array') && items) return ['list of ', ...typeOf(items)];
  if (typeof additionalProperties === 'object')
    return ['object of ', ...typeOf(additionalProperties)];
  const names = types.map((type) => {
    if (type !== 'string') return type;
    if (format === 'date-time') return 'instant';
    return pattern?.includes('[1-9]') ? 'number as text' : 'text';
  });
  return [names.join(' or ')];
}

function joinOf(allOf: Schema[] | undefined): string {
  return allOf ? ' with ' : ' or ';
}

export function notesOf(schema: Schema): string[] {
  const { minimum, maximum, maxLength, maxItems, description, example } = schema;
  const notes: string[] = [];
  if (description) notes.push(description);
  if (minimum !== undefined && maximum !== undefined) notes.push(`${minimum} to ${maximum}`);
  else if (minimum !== undefined) notes.push(`at least ${minimum}`);
  else if (maximum !== undefined) notes.push(`at most ${maximum}`);
  if (maxLength !== undefined && !schema.pattern) notes.push(`at most ${maxLength} characters`);
  if (maxItems !== undefined) notes.push(`at most ${maxItems} items`);
  if (schema.default !== undefined) notes.push(`default ${textOf(schema.default)}`);
  if (example !== undefined) notes.push(`such as ${textOf(example)}`);
  return notes;
}

/** A body with the required fields, as an example; with the first one if none is required. */
export function exampleOf(given: Schema, schemas: Readonly<Record<string, Schema>>): unknown {
  const [schema = given] = alternativesOf(given.$ref ? (schemas[nameOf(given.$ref)] ?? {}) : given);
  if (schema.type === 'array') return [exampleOf(schema.items ?? {}, schemas)];
  if (schema.type !== 'object') return exampleValueOf(schema);
  const { properties = {}, required = [] } = schema;
  const names = required.length > 0 ? required : Object.keys(properties).slice(0, 1);
  const examples = names.map((name) => [name, exampleOf(properties[name] ?? {}, schemas)]);
  return Object.fromEntries(examples);
}

function exampleValueOf(schema: Schema): unknown {
  const { example, type, format, pattern, enum: values, minimum, minLength } = schema;
  if (example !== undefined) return example;
  if (values) return values[0];
  if (format === 'date-time') return '2026-01-31T09:00:00Z';
  const [first] = [type].flat();
  if (first === 'integer' || first === 'number') return minimum ?? 1;
  if (first === 'boolean') return true;
  // Addresses and hashes.
  if (minLength === 42 || minLength === 66) return '0x…';
  return pattern?.includes('[1-9]') ? '1' : '…';
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
