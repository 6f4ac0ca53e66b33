/**
 * How rows of an app become reports: which column is which field, constants, translated values and
 * the time zone. The daemon checks the reports, with the schema of `POST /api/operations`.
 */
import { readFile } from 'node:fs/promises';
import { txHashKey } from '../../kernel/addresses.ts';
import { Failure } from '../../kernel/errors.ts';
import { type Json, jsonText, tryParseJson } from '../../kernel/json.ts';
import { writeFields } from '../../resources/operations/operation.ts';
import { makeTimeReader } from './local-time.ts';
import type { Row } from './rows.ts';

/** The fields of a report. */
const FIELDS = [
  'kind',
  'occurred_at',
  'tx_log_no',
  'tx_app_no',
  'tx_hash',
  ...Object.keys(writeFields),
  'reference',
  'operation_id',
  'distinct',
];

export interface MappingOptions {
  map?: string[];
  set?: string[];
  mapping?: string;
  timeZone?: string;
}

/** One line of the file: the request body that it maps to, or the reason why it maps to none. */
export type Line =
  | { line: number; text: string; transaction: string; kind: string; occurredAt: string }
  | { line: number; problem: { code: string; detail: string } };

export interface Mapping {
  toLine(row: Row): Line;
  /** Columns that no field takes. */
  ignored: Set<string>;
}

interface MappingFile {
  map?: Record<string, string>;
  set?: Record<string, string>;
  /** By field, its translations. */
  values?: Record<string, Record<string, string>>;
  time_zone?: string;
}

/** @throws Failure `bad_setting` */
export async function readMapping(options: MappingOptions): Promise<Mapping> {
  const file = options.mapping === undefined ? {} : await readMappingFile(options.mapping);
  const map = { ...file.map, ...pairsOf('--map', options.map) };
  const constants = { ...file.set, ...pairsOf('--set', options.set) };
  const values = file.values ?? {};
  for (const name of [map, constants, values].flatMap(Object.keys))
    if (!FIELDS.includes(name))
      throw new Failure('bad_setting', `${name} is no field; fields are ${FIELDS.join(', ')}`);
  const zone = options.timeZone ?? file.time_zone;
  return makeMapping({ map, constants, values, readTime: timeReader(zone) });
}

function timeReader(zone: string | undefined) {
  try {
    return makeTimeReader(zone);
  } catch {
    throw new Failure('bad_setting', `${zone} is no time zone; name one such as Asia/Seoul`);
  }
}

async function readMappingFile(path: string): Promise<MappingFile> {
  const text = await readFile(path, 'utf8').catch(() => {
    throw new Failure('bad_setting', `${path} cannot be read`);
  });
  const document = tryParseJson(text);
  const isText = (value: unknown) => typeof value === 'string';
  const isTexts = (value: unknown) => isRecord(value) && Object.values(value).every(isText);
  const rules: Record<string, (value: unknown) => boolean> = {
    map: isTexts,
    set: isTexts,
    values: (value) => isRecord(value) && Object.values(value).every(isTexts),
    time_zone: isText,
  };
  const valid =
    isRecord(document) &&
    Object.entries(document).every(([name, value]) => rules[name]?.(value) ?? false);
  if (valid) return document as MappingFile;
  const form =
    '{"map": {"amount": "value"}, "set": {…}, "values": {"kind": {…}}, "time_zone": "…"}';
  throw new Failure('bad_setting', `${path} is not of the form ${form}`);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** Of `field=column`, comma-separated. */
function pairsOf(option: string, texts: readonly string[] = []): Record<string, string> {
  const pairs = texts
    .flatMap((text) => text.split(','))
    .map((text) => {
      const at = text.indexOf('=');
      if (at > 0) return [text.slice(0, at).trim(), text.slice(at + 1).trim()] as const;
      throw new Failure('bad_setting', `${option} ${text}: write field=value`);
    });
  return Object.fromEntries(pairs);
}

function makeMapping(deps: {
  map: Record<string, string>;
  constants: Record<string, string>;
  values: Record<string, Record<string, string>>;
  readTime: ReturnType<typeof makeTimeReader>;
}): Mapping {
  const { map, constants, values, readTime } = deps;
  const columnOf = new Map(FIELDS.map((field) => [field, map[field] ?? field]));
  const used = new Set(columnOf.values());
  const ignored = new Set<string>();

  function cellOf(field: string, cells: Record<string, Json>): string | undefined {
    const cell = cells[columnOf.get(field) ?? field];
    const text =
      cell === undefined || cell === null || cell === '' ? constants[field] : textOf(cell);
    return text === undefined ? undefined : (values[field]?.[text] ?? text);
  }

  return {
    ignored,
    toLine(row) {
      if ('problem' in row) return row;
      const { line, values: cells } = row;
      for (const name of Object.keys(cells)) if (!used.has(name)) ignored.add(name);
      const report: Record<string, Json> = {};
      for (const field of FIELDS) {
        const text = cellOf(field, cells);
        if (text !== undefined) report[field] = field === 'distinct' ? truth(text) : text;
      }
      if (typeof report.occurred_at === 'string') {
        const time = readTime(report.occurred_at);
        if ('code' in time) return { line, problem: time };
        report.occurred_at = time.text;
      }
      const { tx_hash: hash, tx_app_no: app = '', tx_log_no: no } = report;
      return {
        line,
        text: jsonText(report),
        kind: String(report.kind),
        occurredAt: String(report.occurred_at),
        // Two lines are of one transaction in whatever letters its hash is written.
        transaction: hash ? txHashKey(String(hash)) : `${app}/${no ?? `line ${line}`}`,
      };
    },
  };
}

function textOf(cell: Json): string {
  return typeof cell === 'object' ? jsonText(cell) : String(cell);
}

/** Anything else is refused by the schema. */
function truth(text: string): Json {
  return ({ true: true, false: false } as Record<string, boolean>)[text] ?? text;
}
