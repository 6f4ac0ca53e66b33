/** Commands that send a request or two to a running daemon: `report`, `replay` and `freeze`. */
import { writeFile } from 'node:fs/promises';
import { type Command, Option } from 'commander';
import {
  DAY_MS,
  HOUR_MS,
  type Instant,
  isoText,
  MINUTE_MS,
  parseInstant,
  pause,
  systemClock,
} from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';
import { parseJson } from '../kernel/json.ts';
import { printLine } from '../kernel/telemetry/log.ts';
import type { freeze } from '../resources/admin/status.ts';
import type { replay } from '../resources/delivery/delivery.ts';
import { FORMATS, type ReportFormat } from '../resources/reports/report.ts';
import type { Shown } from '../resources/resource.ts';
import { bytesFromDaemon, callDaemon, type Remote, withQuery } from './api/remote.ts';
import {
  exit,
  NO_BOM,
  type PeriodOptions,
  withExamples,
  withPeriod,
  withRemote,
} from './options.ts';

export function addRequests(program: Command): void {
  withExamples(
    withPeriod(withRemote(program.command('report'), 'key with the scopes manage and read'))
      .description('create a reconciliation report for a period and print it')
      .addOption(
        new Option('--format <format>', 'format')
          .choices(['json', 'csv', 'csv-zip', 'xlsx', 'html', 'hledger'])
          .default('json'),
      )
      .option('--out <file>', 'write to this file instead of standard output')
      .option('--no-bom', NO_BOM),
    'npx tallyhook report --period 2026-11 --format xlsx --out november.xlsx',
    'npx tallyhook report --from 2026-11-01 --to 2026-11-16T12:00:00Z --format html',
  ).action((options) => exit(createReport(options)));

  withExamples(
    withRemote(program.command('replay'), 'key of the owner of the endpoint, with the scope manage')
      .description('send the events of a time to an endpoint again, with the same ids')
      .argument('<endpoint>', 'id of the endpoint')
      .requiredOption(
        '--since <time>',
        'events recorded from then on: RFC 3339, or 30m, 6h, 7d ago',
      )
      .option('--until <time>', 'and before; by default now')
      .option('--type <type...>', 'event types or group.*; by default all that it subscribes to')
      .addOption(
        new Option('--which <which>', 'deliveries that failed, events without one, or all')
          .choices(['failed', 'missing', 'all'])
          .default('failed'),
      )
      .option('--dry-run', 'only count')
      .option('--json', 'print JSON'),
    'npx tallyhook replay ep_… --since 6h --dry-run',
    "npx tallyhook replay ep_… --since 2026-11-01T00:00:00Z --which all --type 'operation.*'",
  ).action((endpoint, options) => exit(runReplay(endpoint, options)));

  for (const [name, description, reason] of [
    ['freeze', 'stop all writes immediately, on every daemon', 'the operator key leaked'],
    ['unfreeze', 'allow writes again', 'the key is replaced'],
  ] as const)
    withExamples(
      withRemote(program.command(name), 'key with the scope admin')
        .description(description)
        .requiredOption('--reason <text>', 'reason, stored in the audit log')
        .option('--json', 'print JSON'),
      `npx tallyhook ${name} --reason "${reason}"`,
    ).action((options) => exit(setFreeze(name, options)));
}

async function createReport(
  options: Remote & PeriodOptions & { format: ReportFormat; out?: string; bom: boolean },
): Promise<number> {
  const { period, from, to, format, out, bom } = options;
  if (!(period || (from && to)))
    throw new Failure('bad_setting', 'name the time: --period 2026-11, or --from and --to');
  const { isText, extension } = FORMATS[format];
  if (!isText && !out)
    throw new Failure('bad_setting', `${format} needs a file: --out report.${extension}`);
  const created = await callDaemon(options, {
    method: 'POST',
    path: '/api/reports',
    body: { kind: 'reconciliation', period, from, to },
  });
  const { id } = parseJson(created) as { id: string };
  const { bytes: report } = await bytesFromDaemon(options, {
    method: 'GET',
    path: withQuery(`/api/reports/${id}`, { format, bom: bom ? undefined : '0' }),
    accept: '*/*',
  });
  if (!out) process.stdout.write(report);
  else
    await writeFile(out, report).catch(() => {
      throw new Failure('bad_setting', `${out} cannot be written; the report is ${id}`);
    });
  return 0;
}

type Replay = Shown<typeof replay>;

interface ReplayOptions extends Remote {
  since: string;
  until?: string;
  type?: string[];
  which: string;
  dryRun?: true;
  json?: true;
}

const POLL_MS = 500;
const UNITS: Record<string, number> = { m: MINUTE_MS, h: HOUR_MS, d: DAY_MS };

/** Waits until the replay has ended; exits with 1 when it was cancelled. */
async function runReplay(endpoint: string, options: ReplayOptions): Promise<number> {
  const { since, until, type: eventTypes = [], which, dryRun = false, json } = options;
  const now = systemClock.now();
  const body = {
    since: isoText(timeOf('--since', since, now)),
    until: until === undefined ? undefined : isoText(timeOf('--until', until, now)),
    types: eventTypes,
    which,
    dry_run: dryRun,
  };
  const path = `/api/endpoints/${encodeURIComponent(endpoint)}/replay`;
  let text = await callDaemon(options, { method: 'POST', path, body });
  let run = parseJson(text) as Replay;
  if (dryRun) {
    const would = `${run.queued} deliveries of ${run.examined} events would be sent again`;
    printLine(json ? text : would);
    return 0;
  }
  if (!json) printLine(`${run.id} runs; it goes on when this command ends`);
  for (let shown = ''; run.state === 'running'; ) {
    await pause(POLL_MS);
    text = await callDaemon(options, { method: 'GET', path: `/api/replays/${run.id}` });
    run = parseJson(text) as Replay;
    const part = `${Math.floor((run.progress ?? 0) * 100)} % of the time examined`;
    const progress = `${run.queued} deliveries queued, events up to ${run.reached}, ${part}`;
    if (!json && progress !== shown) printLine(progress);
    shown = progress;
  }
  printLine(json ? text : `${run.state}: ${run.queued} deliveries are sent again`);
  return run.state === 'done' ? 0 : 1;
}

/** An instant, or a duration before now such as 30m, 6h or 7d. */
function timeOf(option: string, text: string, now: Instant): Instant {
  const [, count, unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  const at = count ? now - Number(count) * (UNITS[unit] ?? 0) : parseInstant(text);
  if (at !== undefined) return at;
  throw new Failure(
    'bad_setting',
    `${option} ${text}: expected RFC 3339, such as 2026-11-01T00:00:00Z, or 30m, 6h or 7d ago`,
  );
}

async function setFreeze(
  action: 'freeze' | 'unfreeze',
  options: Remote & { reason: string; json?: true },
): Promise<number> {
  const text = await callDaemon(options, {
    method: 'POST',
    path: `/api/${action}`,
    body: { reason: options.reason },
  });
  const { frozen_at: at, frozen_by: by, reason } = JSON.parse(text) as Shown<typeof freeze>;
  const since = `${at} by ${by}: ${reason}`;
  const result =
    action === 'freeze'
      ? `All writes are frozen since ${since}`
      : `Writes are allowed again; they were frozen since ${since}`;
  printLine(options.json ? text : result);
  return 0;
}
