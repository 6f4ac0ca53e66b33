/** An API with drifts on a port, and commands of its owners, run as processes against it. */
import { afterAll, beforeAll } from 'vitest';
import { useDrifts } from '../api/drifts-rig.ts';
import { startServer } from '../api/rig.ts';
import { runCommand } from '../harness/command.ts';

export function useServedDrifts() {
  const rig = useDrifts();
  let server: Awaited<ReturnType<typeof startServer>>;
  beforeAll(async () => {
    server = await startServer(rig.api.api);
  });
  afterAll(() => server?.close());
  /** Runs a command with the key of that owner. */
  const as = (owner: keyof typeof rig.keys, ...args: string[]) =>
    runCommand({ TALLYHOOK_URL: server.url, TALLYHOOK_KEY: rig.keys[owner] }, ...args);
  return { rig, as };
}
