/** config/default.yaml and docs/settings.md, as the definition of the settings gives them. */
import { stringify } from 'yaml';
import { z } from 'zod';
import { DEFINED, type Defined, unitOf, VARIABLES } from '../../src/daemon/config/settings.ts';

const WIDTH = 112;
/** Where comments begin. */
const COLUMN = 30;

const HEAD = `# Every setting of Tallyhook with its default value; made from
# src/daemon/config/settings.ts. Their ranges are in docs/settings.md.
#
# A setting takes its value from the first of these that names it:
#   1. the environment variable named in its comment, if there is one
#   2. the YAML file that TALLYHOOK_CONFIG names; it lists only the settings it changes
#   3. this file
# A name that is not in this file, or a value out of range, refuses the start.
#
# Names end in their unit: _ms milliseconds, _s seconds, _bytes bytes, _per_s per second, _days
# days, _max an upper limit. "Polls" are Tallyhook's own reads of the service. "Apps" are the
# callers of the gateway.
`;

export function defaultYaml(): string {
  return HEAD + DEFINED.map((one) => (one.path.length === 1 ? headOf(one) : lineOf(one))).join('');
}

function headOf({ path: [name = ''], description = '' }: Defined): string {
  return `\n${linesOf(description, WIDTH - 2)
    .map(commented)
    .join('')}${name}:\n`;
}

function lineOf({ path, isSection, description = '', variable, ...one }: Defined): string {
  const indent = '  '.repeat(path.length - 1);
  const value = isSection ? '' : ` ${valueText(one.default)}`;
  const text = variable ? `${variable.name}; ${description}` : description;
  const [first = '', ...rest] = linesOf(text, WIDTH - COLUMN - 2);
  const start = `${indent}${path.at(-1)}:${value}`;
  if (first === '') return `${start}\n`;
  const more = rest.map((line) => `${' '.repeat(COLUMN)}${commented(line)}`);
  return `${start.padEnd(COLUMN - 1)} ${commented(first)}${more.join('')}`;
}

const commented = (line: string) => `# ${line}\n`;

/** Lists stay as they are; other text is wrapped. */
function linesOf(text: string, width: number): string[] {
  const wrapped = (line: string) =>
    line.match(new RegExp(`.{1,${width}}(?= |$)`, 'g'))?.map((part) => part.trim()) ?? [];
  return text.split('\n').flatMap((line) => (line.startsWith('-') ? [line] : wrapped(line)));
}

function valueText(value: unknown): string {
  const style = { collectionStyle: 'flow', flowCollectionPadding: false, lineWidth: 0 } as const;
  // Quoted, because a person may make it one that begins with the asterisk of an alias.
  if (typeof value === 'string' && value.includes('*')) return JSON.stringify(value);
  return stringify(value, style).trim();
}

export function settingsPage(): string {
  const shown = DEFINED.filter(({ isSection, description }) => !isSection || description);
  const rows = shown.map((one) => {
    const { path, schema, isSection, default: value, description = '', variable } = one;
    const name = path.join('.');
    if (isSection) return [`\`${name}\``, '', '', description];
    const unit = unitOf(name);
    const range = rangeOf(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }));
    const named = variable ? `${description} (\`${variable.name}\`)` : description;
    return [`\`${name}\``, `\`${valueText(value)}\``, unit ? `${range}, ${unit}` : range, named];
  });
  const variables = Object.entries(VARIABLES).map(([name, { kind, description }]) => [
    `\`${name}\``,
    `${kind === 'secret' ? 'secret; ' : ''}${description}`,
  ]);
  return `# Settings

Made from \`src/daemon/config/settings.ts\`, as is [default.yaml](../config/default.yaml).
\`TALLYHOOK_CONFIG\` names a YAML file that overrides defaults, and a variable in parentheses
overrides both. An unknown name or an invalid value refuses the start with one line. What is in
effect, and where it comes from: \`GET /api/settings\` and the page Settings.

${table(['setting', 'default', 'values', 'meaning'], rows)}
These variables are no settings of the file. A secret \`X\` may also stand in a file of at most
64 KiB, whose path is then \`X_FILE\`; a newline at its end does not count.

${table(['variable', 'meaning'], variables)}`;
}

function table(head: string[], rows: string[][]): string {
  const lineOfCells = (cells: string[]) => `| ${cells.map(cellOf).join(' | ')} |\n`;
  return [head, head.map(() => '---'), ...rows].map(lineOfCells).join('');
}

const cellOf = (text: string) =>
  text
    .replaceAll('|', '\\|')
    .replace(/^- \{.*/gm, '`$&`')
    .replaceAll('\n', '<br>');

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** The values that a schema allows, in short. */
function rangeOf(schema: JsonSchema | boolean): string {
  if (typeof schema === 'boolean') return 'any';
  const { type, anyOf, oneOf = anyOf, prefixItems, items } = schema;
  const { minimum, maximum, exclusiveMinimum } = schema;
  if (oneOf) return [...new Set(oneOf.map(rangeOf))].join(' or ');
  if (schema.const !== undefined) return String(schema.const);
  if (schema.enum) return schema.enum.join(', ');
  if (type === 'boolean') return 'true or false';
  if (type === 'array')
    return `a list: ${[...(prefixItems ?? []), items].map(itemOf).join(', then ')}`;
  if (type === 'integer' || type === 'number') {
    const least =
      exclusiveMinimum === undefined ? String(minimum) : `more than ${exclusiveMinimum}`;
    const isSafe = maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER;
    return isSafe ? `${least} to ${maximum}` : `${least} or more`;
  }
  if (type === 'object') return mapOf(schema);
  return { string: 'text', null: 'null' }[String(type)] ?? 'any';
}

const itemOf = (items: JsonSchema['items']) =>
  rangeOf(Array.isArray(items) ? true : (items ?? true));

/** The names of a map that are fixed, with the values that are. */
function mapOf({ properties, required = [] }: JsonSchema): string {
  if (!properties) return 'a map';
  const members = Object.entries(properties).map(([name, schema]) => {
    const value = typeof schema === 'boolean' ? undefined : schema.const;
    const fixed = value === undefined ? name : `${name}: ${value}`;
    return required.includes(name) ? fixed : `${fixed}?`;
  });
  return `\`{ ${members.join(', ')} }\``;
}
