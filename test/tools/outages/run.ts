/** Runs one outage under a light load, and judges what was seen. */
import { request } from 'undici';
import { connect } from '../../../src/db/connect.ts';
import { type Instant, monotonicMs, pause, systemClock } from '../../../src/kernel/clock.ts';
import { makeApp } from '../../harness/app.ts';
import { seededRandom } from '../../harness/seeded-random.ts';
import { until } from '../../harness/until.ts';
import { startTraffic, type Traffic, type Write } from '../soak/traffic.ts';
import { isOpen, type Outcomes, outcomesOf, undelivered } from '../soak/verdict.ts';
import { alertMetrics, firingAfter } from './alerts.ts';
import { type LogFigures, logFigures } from './log.ts';
import { openScene, type Scene, type ScenePlan } from './scene.ts';
import { makeScrapes, SCRAPE_S, type Scrapes } from './series.ts';

export interface Outage {
  name: string;
  /** What happens, in a few words. */
  what: string;
  /** The alert that names it; none may fire without one. */
  alert: string | undefined;
  /**
   * What /readyz of the first daemon answers while it lasts: 0 for no answer, undefined if that
   * changes.
   */
  ready: 200 | 503 | 0 | undefined;
  /** A line of the log that names it; undefined if the log has nothing to say. */
  line: RegExp | undefined;
  lastsS: number;
  /** How long the rules are evaluated from its beginning. */
  horizonS?: number;
  scene?: ScenePlan;
  begin(scene: Scene): Promise<unknown>;
  end(scene: Scene): Promise<unknown>;
}

export interface Seen {
  name: string;
  what: string;
  alert: string | undefined;
  /** Seconds from its beginning until the alert fires; undefined if it does not. */
  firesAfterS: number | undefined;
  /** The others, by when they fire. */
  others: Record<string, number>;
  log: LogFigures;
  /** The last answer of /readyz while it lasted, seconds until the first of that, and the last. */
  ready: { during: number; afterS: number; end: number };
  writes: number;
  outcomes: Outcomes;
  missingEvents: number;
  /** Seconds from its end until nothing was open and every event had arrived. */
  recoveredS: number;
  faults: string[];
}

export interface RunPlan {
  bin: string;
  perS: number;
  quietS: number;
  /** Instead of what each outage says. */
  lastsS?: number;
}

/** How the figures of a table were made. */
export const HELD =
  `Scraped every ${SCRAPE_S} s. An alert may take longer than the outage lasted: promtool then ` +
  'reads the second half of the samples again and again, counters as growing further.';

/** Fires on a machine that other work keeps busy, also without the outage. */
const OF_THE_MACHINE = /^TallyhookEventLoopSlow\b/;
const HISTORY_S = 300;
const HORIZON_S = 40 * 60;
const REPEAT_MS = 2_000;
const SETTLES_MS = 240_000;
const READY_AGAIN_MS = 60_000;
const GOES_ON_MS = 3_000;

export async function runOutage(
  outage: Outage,
  plan: RunPlan,
  say: (text: string) => void,
): Promise<Seen> {
  const scene = await openScene(plan.bin, outage.scene ?? {});
  try {
    return judged(outage, await watched(outage, scene, plan, say));
  } finally {
    // A server that is frozen cannot be stopped.
    await scene.postgres.signal('SIGCONT').catch(() => {});
    await scene.close();
  }
}

type Watched = Awaited<ReturnType<typeof watched>>;

/** Makes and ends the outage under load, and waits for what follows. */
async function watched(outage: Outage, scene: Scene, plan: RunPlan, say: (text: string) => void) {
  const [unit] = scene.units;
  const scrapes = makeScrapes(alertMetrics());
  const traffic = startLoad(scene, plan.perS);
  try {
    await watch(plan.quietS, scene, scrapes);
    const quiet = scrapes.slots;
    const begunAt = systemClock.now();
    say(`begins: ${outage.what}`);
    await outage.begin(scene);
    const readiness = await watch(plan.lastsS ?? outage.lastsS, scene, scrapes);
    const lastedMs = systemClock.now() - begunAt;
    const lines = scene.log().filter((line) => timeOf(line) >= begunAt);
    const slots = scrapes.slots - quiet;
    say('ends');
    await outage.end(scene);
    const endedMs = monotonicMs();
    const isReady = async () => (await statusOf(unit.url)) === 200 || undefined;
    const end = (await until(isReady, { deadlineMs: READY_AGAIN_MS })) ? 200 : 503;
    await pause(GOES_ON_MS);
    await traffic.stop();
    const { outcomes, missing } = await settled(scene, traffic.writes);
    const recoveredMs = monotonicMs() - endedMs;
    const { writes } = traffic;
    const { series } = scrapes;
    const window = { quiet, outage: slots };
    const figures = { writes: writes.length, outcomes, missing: missing.length, recoveredMs };
    return { series, window, begunAt, lastedMs, lines, readiness, end, ...figures };
  } finally {
    await traffic.stop();
  }
}

function startLoad({ units: [unit], sandbox, wallets }: Scene, perS: number): Traffic {
  const apps = [makeApp(() => unit.url)];
  return startTraffic({
    apps: () => apps,
    sandbox,
    random: seededRandom(1),
    wallets,
    perS,
    readsPerS: 1,
    lost: 0,
    repeatMs: REPEAT_MS,
  });
}

/** Scrapes, and asks the first daemon for readiness, once for each slot of that time. */
async function watch(seconds: number, { units }: Scene, scrapes: Scrapes) {
  const answers: { status: number; at: Instant }[] = [];
  for (let n = 0; n < Math.ceil(seconds / SCRAPE_S); n++) {
    const next = pause(SCRAPE_S * 1_000);
    const asked = statusOf(units[0].url).then((status) =>
      answers.push({ status, at: systemClock.now() }),
    );
    await Promise.all([scrapes.scrape(units), asked, next]);
  }
  return answers;
}

/** When a line was logged; what is no JSON comes from Node itself, as its last words. */
function timeOf(line: string): Instant {
  const time = /"time":"([^"]+)"/.exec(line)?.[1];
  return time === undefined ? Number.POSITIVE_INFINITY : Date.parse(time);
}

async function judged(outage: Outage, run: Watched): Promise<Seen> {
  const { name, what, alert, horizonS = HORIZON_S } = outage;
  const { window, begunAt, readiness, end, writes, outcomes } = run;
  const fired = await firingAfter(run.series, {
    ...window,
    before: HISTORY_S / SCRAPE_S,
    after: Math.ceil(horizonS / SCRAPE_S) - window.outage,
  });
  const during = readiness.at(-1)?.status ?? 0;
  const firstAt = readiness.find(({ status }) => status === during)?.at ?? begunAt;
  const others = [...fired]
    .filter(([other]) => other !== alert)
    .map(([other, { afterS, of }]) => [of ? `${other} (${of})` : other, afterS]);
  const seen: Omit<Seen, 'faults'> = {
    name,
    what,
    alert,
    firesAfterS: alert === undefined ? undefined : fired.get(alert)?.afterS,
    others: Object.fromEntries(others),
    log: logFigures(run.lines, run.lastedMs / 1_000, outage.line),
    ready: { during, afterS: (firstAt - begunAt) / 1_000, end },
    writes,
    outcomes,
    missingEvents: run.missing,
    recoveredS: run.recoveredMs / 1_000,
  };
  return { ...seen, faults: faultsOf(outage, seen) };
}

/** The status of /readyz; 0 without an answer. */
async function statusOf(url: string): Promise<number> {
  try {
    const answer = await request(`${url}/readyz`, { signal: AbortSignal.timeout(4_000) });
    await answer.body.dump();
    return answer.statusCode;
  } catch {
    return 0;
  }
}

/** Waits until nothing is open and every event has arrived, and compares all writes. */
async function settled({ postgres, sandbox, receiver }: Scene, writes: readonly Write[]) {
  const db = connect({ url: postgres.url, max: 2 });
  try {
    const received = () =>
      new Set(receiver.requests.map(({ headers }) => headers['webhook-id'] ?? ''));
    const isDone = async () =>
      (!(await isOpen(db)) && (await undelivered(db, received())).length === 0) || undefined;
    await until(isDone, { deadlineMs: SETTLES_MS });
    const applied = new Map<string, number>();
    for (const { reason_type: name } of sandbox.control.effects(0n, 1_000_000))
      if (name !== null) applied.set(name, (applied.get(name) ?? 0) + 1);
    const tokens = new Set<bigint>();
    for (const { token_id: id, exists } of sandbox.world.tokens.values())
      if (exists) tokens.add(id);
    const outcomes = await outcomesOf(db, writes, { applied, tokens });
    return { outcomes, missing: await undelivered(db, received()) };
  } finally {
    await db.end();
  }
}

/** What an outage must not show, in words. */
function faultsOf(outage: Outage, seen: Omit<Seen, 'faults'>): string[] {
  const { alert, firesAfterS, others, log, ready, outcomes, missingEvents } = seen;
  const silent =
    alert === undefined ? Object.keys(others).filter((one) => !OF_THE_MACHINE.test(one)) : [];
  const faults: Record<string, boolean> = {
    [`${alert} does not fire`]: alert !== undefined && firesAfterS === undefined,
    [`${silent.join(', ')} should not fire`]: silent.length > 0,
    'no line of the log names it': !log.isNamed,
    [`the log is flooded: ${log.mostCommon}`]: log.isFlooded,
    [`/readyz says ${ready.during} instead of ${outage.ready}`]:
      outage.ready !== undefined && ready.during !== outage.ready,
    [`/readyz says ${ready.end} after it`]: ready.end !== 200,
    [`applied and not recorded: ${outcomes.unrecorded.join(', ')}`]: outcomes.unrecorded.length > 0,
    [outcomes.wrong.join(', ')]: outcomes.wrong.length > 0,
    [`${missingEvents} events did not arrive`]: missingEvents > 0,
  };
  return Object.entries(faults).flatMap(([fault, is]) => (is ? [fault] : []));
}
