/** Writes the types of the events for `tallyhook/receive` from their definitions. */
import { bodyOf } from '../../src/resources/delivery/event.ts';
import { EVENT_TYPES, EVENTS } from '../../src/resources/delivery/events.ts';
import type { Field, Fields } from '../../src/resources/fields.ts';

const HEADER = `/**
 * The events by their type, made from their definitions in src/resources/delivery/events.ts by
 * \`npx vitest run test/library/events.test.ts -u\`. Amounts and numbers of the service are decimal
 * text, instants RFC 3339 in UTC. Fields may be added, so a receiver ignores what it does not know.
 */

interface Body<Type extends string, Data> {
  /** \`evt_…\`, the same for every endpoint and attempt. */
  id: string;
  type: Type;
  /** When it happened, as far as known. */
  timestamp: string;
  data: Data;
}
`;

/** The text of library/receive/events.ts. */
export function eventTypesText(): string {
  const names = new Map<Fields, string>();
  const interfaces: string[] = [];
  const members = EVENT_TYPES.map((type) => {
    const { data: own, description } = EVENTS[type];
    let name = names.get(own);
    if (name === undefined) {
      name = `${type.split(/[._]/).map(capital).join('')}Data`;
      names.set(own, name);
      const fields = bodyOf(type).data.fields ?? {};
      interfaces.push(`export interface ${name} {\n${membersOf(fields, '  ')}}\n`);
    }
    const line = `  '${type}': Body<'${type}', ${name}>;\n`;
    const broken = `  '${type}': Body<\n    '${type}',\n    ${name}\n  >;\n`;
    return commentOf(description, '  ') + (line.length > COLUMNS_MAX ? broken : line);
  });
  return [
    HEADER,
    ...interfaces,
    `export interface EventsByType {\n${members.join('')}}\n`,
    'export type EventType = keyof EventsByType;\n',
    '/** An event; its `type` says which `data` it has. */',
    'export type TallyhookEvent = EventsByType[EventType];\n',
  ]
    .join('\n')
    .replaceAll('\n\n\n', '\n\n');
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

function membersOf(fields: Fields, indent: string): string {
  return Object.entries(fields)
    .map(([name, field]) => {
      const { description, isOptional } = field;
      const comment = description === undefined ? '' : commentOf(description, indent);
      const type = `${name}${isOptional ? '?' : ''}: ${typeOf(field, indent)};\n`;
      return `${comment}${indent}${type.replace(': \n', ':\n')}`;
    })
    .join('');
}

const COLUMNS_MAX = 100;

function commentOf(text: string, indent: string): string {
  const sentence = text.endsWith('.') ? text : `${text}.`;
  const line = `${indent}/** ${sentence} */`;
  if (line.length <= COLUMNS_MAX) return `${line}\n`;
  const lines = [''];
  for (const word of sentence.split(' ')) {
    if (`${indent} * ${lines.at(-1)} ${word}`.length > COLUMNS_MAX) lines.push('');
    lines.push(`${lines.pop()} ${word}`.trim());
  }
  return `${indent}/**\n${lines.map((one) => `${indent} * ${one}\n`).join('')}${indent} */\n`;
}

function typeOf(field: Field, indent: string): string {
  const type = valueTypeOf(field, indent);
  return field.isNullable && field.kind !== 'json' ? `${type} | null` : type;
}

function valueTypeOf({ kind, values = [], items, fields = {} }: Field, indent: string): string {
  switch (kind) {
    case 'count':
    case 'number':
      return 'number';
    case 'flag':
      return 'boolean';
    case 'json':
      return 'unknown';
    case 'list': {
      const type = items ? typeOf(items, indent) : 'unknown';
      return type.includes('|') ? `(${type})[]` : `${type}[]`;
    }
    case 'object':
      if (items) return `{ [name: string]: ${typeOf(items, indent)} }`;
      if (Object.keys(fields).length === 0) return 'Record<string, unknown>';
      return `{\n${membersOf(fields, `${indent}  `)}${indent}}`;
    case 'one-of':
      return oneOf(values, indent);
    default:
      return 'string';
  }
}

function oneOf(values: readonly string[], indent: string): string {
  const literals = values.map((value) => `'${value}'`);
  const line = literals.join(' | ');
  if (line.length < COLUMNS_MAX - 40) return line;
  return literals.map((literal) => `\n${indent}  | ${literal}`).join('');
}
