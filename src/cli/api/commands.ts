/**
 * Commands made from the API's document: every operation that answers JSON and has no command of
 * its own is `tallyhook <tag> <verb>`, with its parameters as arguments and options.
 */
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Schema } from '../../api/api.ts';
import { Failure } from '../../kernel/errors.ts';
import { isObject, tryParseJson } from '../../kernel/json.ts';
import { printLine } from '../../kernel/telemetry/log.ts';
import { exit, withExamples, withRemote } from '../options.ts';
import { callDaemon, type Method, pagesOf, type Remote, withQuery } from './remote.ts';
import { printTable, shownText } from './table.ts';

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema?: Schema;
}

interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>;
  security?: Record<string, string[]>[];
}

interface Document {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

type Row = Record<string, unknown>;

/** Parameters of queries that no option gives: a list is read to its end, and as JSON. */
const UNASKED = ['cursor', 'format', 'wait'];

/** Adds the commands that are missing; those of a group that exists join it. */
export async function addApiCommands(program: Command): Promise<void> {
  const { describeApi } = await import('../../api/api.ts');
  const document: Document = JSON.parse(JSON.stringify(describeApi()));
  const written = new Set(program.commands);
  for (const [path, methods] of Object.entries(document.paths))
    for (const [method, operation] of Object.entries(methods))
      addOperation(program, document, path, method.toUpperCase() as Method, operation);
  for (const group of program.commands)
    if (!written.has(group)) group.description(`of the API: ${verbsOf(group).join(', ')}`);
}

function verbsOf(group: Command): string[] {
  return group.commands.map((one) => one.name());
}

/** A member of the query or of the body, and the option that gives it. */
interface Input {
  name: string;
  option: Option;
}

function addOperation(
  program: Command,
  document: Document,
  path: string,
  method: Method,
  operation: Operation,
): void {
  const { operationId, parameters = [], requestBody, summary, description } = operation;
  const answer = answerOf(operation);
  const body = requestBody && resolve(document, requestBody.content['application/json']?.schema);
  if (answer === undefined || !path.startsWith('/api/') || (requestBody && !body?.properties))
    return;
  const [name = '', ...verbs] = operationId.split('_');
  const verb = verbs.join('-');
  const group = program.commands.find((one) => one.name() === name) ?? program.command(name);
  if (verb === '' || verbsOf(group).includes(verb)) return;
  const command = withRemote(group.command(verb, { isDefault: verb === 'list' }), keyOf(operation))
    .description([lowerFirst(summary), description].filter(Boolean).join('. '))
    .option('--json', 'print JSON');
  const inPath = parameters.filter((one) => one.in === 'path');
  for (const one of inPath) command.argument(`<${one.name}>`, one.description ?? '');
  const query = parameters
    .filter((one) => one.in === 'query' && !UNASKED.includes(one.name))
    .map((one) => inputOf(name, one.name, { ...one.schema, ...described(one) }, one.required));
  const members = Object.entries(body?.properties ?? {}).map(([member, schema]) =>
    inputOf(name, member, resolve(document, schema), body?.required?.includes(member)),
  );
  for (const { option } of [...query, ...members]) command.addOption(option);
  const needed = members.filter(({ option }) => option.mandatory).map(({ option }) => option.long);
  const example = [name, verb, ...inPath.map(() => '…'), ...needed.map((flag) => `${flag} …`)];
  withExamples(command, `npx tallyhook ${example.join(' ')}`);
  const isList = parameters.some((one) => one.name === 'cursor');
  command.action(async (...given: unknown[]) => {
    const options = given[inPath.length] as Options;
    const sentQuery = query.filter((one) => one.name !== 'limit');
    const asked = withQuery(filled(path, inPath, given), valuesOf(sentQuery, options));
    if (isList)
      return exit(printList(options, asked, { name, columns: columnsOf(document, answer) }));
    const sent = body && valuesOf(members, options);
    return exit(printAnswer(options, { method, path: asked, body: sent }));
  });
}

type Options = Remote & Row & { json?: true; limit?: number };

function keyOf({ security = [] }: Operation): string {
  const scopes = security.flatMap((one) => Object.values(one).flat());
  return scopes.length === 0 ? 'any key' : `key with the scope ${scopes.join(' or ')}`;
}

function described({ description }: Parameter): { description?: string } {
  return description === undefined ? {} : { description };
}

function filled(path: string, inPath: readonly Parameter[], given: readonly unknown[]): string {
  return inPath.reduce(
    (text, { name }, n) => text.replace(`{${name}}`, encodeURIComponent(String(given[n]))),
    path,
  );
}

/** What is not given is undefined. */
function valuesOf(inputs: readonly Input[], options: Options): Row {
  return Object.fromEntries(
    inputs.map(({ name, option }) => [name, options[option.attributeName()]]),
  );
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

/** The schema of a JSON answer, null for one without a body; undefined for any other. */
function answerOf({ responses }: Operation): Schema | null | undefined {
  const [, success] = Object.entries(responses).find(([status]) => status.startsWith('2')) ?? [];
  if (!success) return undefined;
  return success.content ? success.content['application/json']?.schema : null;
}

function resolve({ components }: Document, schema: Schema | undefined): Schema {
  const name = schema?.$ref?.slice(schema.$ref.lastIndexOf('/') + 1);
  return (name === undefined ? schema : components.schemas[name]) ?? {};
}

/** The columns that the definition of the listed thing has for tables, and its id. */
function columnsOf(document: Document, answer: Schema | null): string[] {
  const item: Schema & { 'x-columns'?: string[] } = resolve(
    document,
    resolve(document, answer ?? undefined).properties?.data?.items,
  );
  const { properties = {}, 'x-columns': columns = Object.keys(properties) } = item;
  return 'id' in properties && !columns.includes('id') ? ['id', ...columns] : columns;
}

function inputOf(group: string, name: string, schema: Schema, isRequired = false): Input {
  const choices = schema.anyOf ?? [schema];
  const types = choices.flatMap(({ type = 'json' }) => type);
  const isFlag = types.includes('boolean');
  const isMany = choices.some(({ items }) => items?.type === 'string');
  const value = isMany ? ' <value...>' : ` <${kindOf(types)}>`;
  const flag = flagOf(name, group);
  const option = new Option(`${flag}${isFlag ? '' : value}`, schema.description ?? '');
  if (schema.enum) option.choices(schema.enum.map(String));
  else if (!isFlag && !isMany && !types.includes('string'))
    option.argParser(kindOf(types) === 'number' ? numberOf : jsonOf);
  if (isRequired) option.makeOptionMandatory();
  return { name, option };
}

/** Such as `--endpoint-url` where every command has an option of the name. */
function flagOf(name: string, group: string): string {
  const isTaken = ['url', 'key', 'json', 'help'].includes(name);
  return `--${isTaken ? `${group.replace(/s$/, '')}-` : ''}${name.replaceAll('_', '-')}`;
}

function kindOf(types: string[]): string {
  if (types.includes('string')) return 'text';
  return types.includes('integer') || types.includes('number') ? 'number' : 'json';
}

function numberOf(text: string): number | null {
  if (text === 'null') return null;
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value))
    throw new InvalidArgumentError('expected a number');
  return value;
}

/** Lists and objects are written as JSON. */
function jsonOf(text: string): unknown {
  const value = tryParseJson(text);
  if (value === undefined) throw new InvalidArgumentError('expected JSON');
  return value;
}

async function printList(
  options: Options,
  path: string,
  { name, columns }: { name: string; columns: string[] },
): Promise<number> {
  const { limit = Number.POSITIVE_INFINITY } = options;
  if (limit < 1) throw new Failure('bad_setting', '--limit: expected a number from 1');
  const rows: Row[] = [];
  for await (const page of pagesOf<Row>(options, path)) {
    rows.push(...page);
    if (rows.length >= limit) break;
  }
  const none = `There are no such ${name}`;
  printTable(columns, rows.slice(0, limit), { json: options.json, none });
  return 0;
}

async function printAnswer(
  options: Options,
  call: { method: Method; path: string; body: Row | undefined },
): Promise<number> {
  const text = await callDaemon(options, call);
  const shown = tryParseJson(text);
  if (options.json || !isObject(shown)) {
    printLine(text === '' ? 'Done' : text);
    return 0;
  }
  for (const [name, value] of Object.entries(shown)) printFact(name, value);
  return 0;
}

/** A member of an answer; a list of objects has a line for each. */
function printFact(name: string, value: unknown): void {
  const isTable = Array.isArray(value) && value.some((one) => typeof one === 'object');
  if (!isTable) {
    printLine(`${name}: ${shownText(value)}`);
    return;
  }
  printLine(`${name}:`);
  for (const one of value as Row[]) printLine(`  ${Object.values(one).map(shownText).join('  ')}`);
}

/** Whether the arguments name, or ask for help about, more than the commands written by hand. */
export function needsApi(program: Command, args: readonly string[]): boolean {
  const [first, second] = args.filter((text) => !text.startsWith('-'));
  const asksHelp = args.some((text) => text === '--help' || text === '-h') || first === 'help';
  const group = program.commands.find((one) => one.name() === first);
  if (!group) return first !== undefined || asksHelp;
  if (group.commands.length === 0) return false;
  return second === undefined ? asksHelp : !group.commands.some((one) => one.name() === second);
}
