/** The service of this installation, for commands that read it without a daemon. */
import {
  type Config,
  checkService,
  type Database,
  openService,
  upstreamSettings,
} from '../../daemon/daemon.ts';
import { makeLog } from '../../kernel/log.ts';
import { makeMetrics } from '../../kernel/metrics.ts';
import { systemRandom } from '../../kernel/random.ts';
import { makeQuotaStore } from '../../observer/observer.ts';
import { openUpstream, type Upstream } from '../../upstream/upstream.ts';

/** Opens the configured service, runs the work, and closes it. @throws Failure `bad_setting` */
export async function withUpstream<T>(
  { db, clock }: Database,
  config: Config,
  work: (upstream: Upstream, identity: string) => Promise<T>,
): Promise<T> {
  const log = makeLog('error');
  const opened = await openService(config, { clock, random: systemRandom, log });
  await checkService(db, opened, clock);
  const upstream = await openUpstream({
    ...opened.address,
    clock,
    random: systemRandom,
    log,
    metrics: makeMetrics(),
    quota: makeQuotaStore(db),
    settings: upstreamSettings(config),
  });
  try {
    return await work(upstream, opened.identity);
  } finally {
    await upstream.close();
  }
}
