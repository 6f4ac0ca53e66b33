/** `tallyhook periods`: lists, closes, signs and reopens periods through the daemon. */
import type { Command } from 'commander';
import { Failure } from '../../kernel/errors.ts';
import { jsonText } from '../../kernel/json.ts';
import { printLine } from '../../kernel/telemetry/log.ts';
import { MOMENT_WORDS, type period, type periodClose } from '../../resources/ledger/period.ts';
import type { Shown } from '../../resources/resource.ts';
import { callDaemon, listAll, type Remote } from '../api/remote.ts';
import {
  exit,
  type PeriodOptions,
  toWhole,
  withExamples,
  withPeriod,
  withRemote,
} from '../options.ts';

const READ = 'key with the scope read';
const DECIDE = 'key with the scope decide';

export function addPeriods(program: Command): void {
  const group = program
    .command('periods')
    .description('periods of the books: list, close with a report, sign, reopen, approve');
  const check = 'npx tallyhook periods close --period 2026-11 --dry-run';
  const close =
    'npx tallyhook periods close --to 2026-12-01 --sign-off "drf_…=refund is on its way"';
  const sign = 'npx tallyhook periods sign per_…';
  const reopen = 'npx tallyhook periods reopen per_… --reason "receipt 17 was missing"';
  withExamples(group, 'npx tallyhook periods', check, close, sign, reopen);
  withExamples(
    withRemote(group.command('list', { isDefault: true }), READ)
      .description('list closes of periods, newest first, and since when the open one runs')
      .option('--json', 'print JSON'),
    'npx tallyhook periods --json',
  ).action((options) => exit(listPeriods(options)));
  withExamples(
    withPeriod(
      withRemote(group.command('close'), DECIDE),
      `begin, only of the first period: ${MOMENT_WORDS}`,
    )
      .description('close the period that begins where the last closed one ends')
      .option('--sign-off <subject=reason...>', 'open items of the report that may stay open')
      .option('--reason <text>', 'reason, stored with the close')
      .option('--dry-run', 'only print what prevents the close; exits 1 if something does')
      .option('--json', 'print JSON'),
    check,
    close,
  ).action((options) => exit(closePeriod(options)));
  withExamples(
    withRemote(group.command('sign'), DECIDE)
      .description('sign a closed period; another owner than the one that closed it')
      .argument('<id>', 'id of the period')
      .option('--json', 'print JSON'),
    sign,
  ).action((id, options) => exit(actOn(id, 'sign', options)));
  withExamples(
    withRemote(group.command('reopen'), DECIDE)
      .description('reopen the newest closed period, or propose to reopen the newest signed one')
      .argument('<id>', 'id of the period')
      .requiredOption('--reason <text>', 'reason, stored with the reopening')
      .option('--json', 'print JSON'),
    reopen,
  ).action((id, options) => exit(actOn(id, 'reopen', options, { reason: options.reason })));
  withExamples(
    withRemote(group.command('approve'), DECIDE)
      .description('approve that a signed period is reopened; another owner than the proposer')
      .argument('<id>', 'id of the period')
      .requiredOption('--proposal <n>', 'number of the proposal that you read; see list', toWhole)
      .option('--json', 'print JSON'),
    'npx tallyhook periods approve per_… --proposal 2',
  ).action((id, options) => exit(actOn(id, 'approve', options, { n: options.proposal })));
}

type Options = Remote & { json?: true };

type Period = Shown<typeof period>;

async function listPeriods(options: Options): Promise<number> {
  const data = await listAll<Period>(options, '/api/periods');
  if (options.json) {
    printLine(jsonText({ data }));
    return 0;
  }
  for (const period of data) printLine(lineOf(period));
  const ends = data.filter(({ state }) => state !== 'reopened').map((period) => period.period_to);
  const last = ends.toSorted().at(-1);
  printLine(last === undefined ? 'No period is closed' : `Open since ${last}`);
  return 0;
}

/** Returns 1 when a dry run finds what prevents the close. */
async function closePeriod(
  options: Options &
    PeriodOptions & {
      reason?: string;
      signOff?: string[];
      dryRun?: true;
    },
): Promise<number> {
  const { period: named, from, to, reason, dryRun } = options;
  const text = await callDaemon(options, {
    method: 'POST',
    path: '/api/periods/close',
    body: {
      period: named,
      from,
      to,
      reason,
      sign_offs: (options.signOff ?? []).map(signOffOf),
      dry_run: dryRun,
    },
  });
  const { period, obstacles, ...result } = JSON.parse(text) as Shown<typeof periodClose>;
  const code = obstacles.length > 0 ? 1 : 0;
  if (options.json) printLine(text);
  else if (period) printLine(lineOf(period));
  else {
    const span = `${result.period_from} to ${result.period_to}`;
    printLine(code === 0 ? `${span} can be closed` : `${span} does not close, because of:`);
    for (const { kind, subject, amount, next } of obstacles)
      printLine([`  ${kind}`, subject, amount, next].filter(Boolean).join('  '));
  }
  return code;
}

async function actOn(
  id: string,
  action: 'sign' | 'reopen' | 'approve',
  options: Options,
  body?: object,
): Promise<number> {
  const path = `/api/periods/${encodeURIComponent(id)}/${action}`;
  const text = await callDaemon(options, { method: 'POST', path, body });
  printLine(options.json ? text : lineOf(JSON.parse(text) as Period));
  return 0;
}

/** `drf_…=paid in cash` as a sign-off. */
function signOffOf(text: string): { subject: string; reason: string } {
  const at = text.indexOf('=');
  if (at < 1 || at === text.length - 1)
    throw new Failure('bad_setting', `--sign-off ${text}: write <subject>=<reason>`);
  return { subject: text.slice(0, at), reason: text.slice(at + 1) };
}

function lineOf(period: Period): string {
  const { id, state, period_from: from, period_to: to, report_id: report } = period;
  const { reopen_proposal: proposal, reopen_proposed_by: proposer } = period;
  const reopening = [
    proposer && `reopening proposed by ${proposer} as proposal ${proposal}`,
    period.reopened_by && `reopened by ${period.reopened_by}`,
  ].filter(Boolean);
  const people = [
    `closed by ${period.closed_by}`,
    ...(period.sign_offs.length > 0 ? [`${period.sign_offs.length} signed off`] : []),
    ...(period.signed_by ? [`signed by ${period.signed_by}`] : []),
    ...(reopening.length > 0 ? [`${reopening.join(', ')} (${period.reopen_reason})`] : []),
  ];
  return [id, `${from} to ${to}`, state, report, people.join(', ')].join('  ');
}
