/**
 * The image of the Dockerfile without Docker: each stage is an overlay over the root of this
 * machine, a Debian as its base is, in which the steps run as in a build. Needs root.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');

export const CAN_BUILD = process.geteuid?.() === 0;

export interface Image {
  env: Record<string, string>;
  entrypoint: string[];
  command: string[];
  health: string[];
  /**
   * Starts a command as the user of the image, on a read-only root, as orchestrators do: only its
   * volume, which is that folder, and /tmp can be written to.
   */
  start(
    args: readonly string[],
    options: { env: Record<string, string>; data: string },
  ): ChildProcess;
}

interface Stage {
  /** What the steps have added to the base. */
  upper: string;
  workdir: string;
  user: string;
  env: Record<string, string>;
}

interface Step {
  name: string;
  text: string;
}

/**
 * Runs the steps of the Dockerfile.
 * @param folder where the stages are
 * @param isSkipped which RUN this machine does not need
 */
export async function buildImage(
  folder: string,
  isSkipped: (text: string) => boolean,
): Promise<Image> {
  const stages = new Map<string, Stage>();
  const built = { entrypoint: [] as string[], command: [] as string[], health: [] as string[] };
  let stage: Stage | undefined;
  for (const { name, text } of stepsOf(await readFile(join(ROOT, 'Dockerfile'), 'utf8'))) {
    if (name === 'FROM') {
      const [, alias = `${stages.size}`] = /^debian:12-slim(?: AS (\w+))?$/.exec(text) ?? [];
      stage = await openStage(join(folder, alias));
      stages.set(alias, stage);
      continue;
    }
    if (!stage) throw new Error(`the Dockerfile begins with ${name}`);
    if (name === 'COPY') await copy(stage, text, stages);
    else if (name === 'RUN') await (isSkipped(text) ? undefined : runStep(stage, text));
    else if (name === 'WORKDIR') stage.workdir = await madeFolder(stage, text);
    else if (name === 'USER') stage.user = text;
    else if (name === 'ENV') Object.assign(stage.env, variablesOf(text, stage.env));
    else if (name === 'ENTRYPOINT') built.entrypoint = JSON.parse(text);
    else if (name === 'CMD') built.command = JSON.parse(text);
    else if (name === 'HEALTHCHECK') built.health = JSON.parse(text.replace(/^.*? CMD /, ''));
    else if (!['VOLUME', 'EXPOSE', 'STOPSIGNAL'].includes(name))
      throw new Error(`the Dockerfile has an unknown step ${name}`);
  }
  if (!stage) throw new Error('the Dockerfile has no stage');
  const last = stage;
  return {
    ...built,
    env: last.env,
    start: (args, { env, data }) =>
      enter(last, [...built.entrypoint, ...args], {
        // Here tini is not the first process.
        env: { ...last.env, TINI_SUBREAPER: '1', ...env },
        mounts: `mount -o remount,ro "$M"; mount --bind '${data}' "$M/data"
          mount -t tmpfs tmpfs "$M/tmp"`,
      }),
  };
}

function stepsOf(text: string): Step[] {
  const lines = text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n/g, '')
    .split('\n');
  return lines.flatMap((line) => {
    const [, name, rest] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    return name && rest !== undefined ? [{ name, text: rest.replaceAll(/\s{2,}/g, ' ') }] : [];
  });
}

async function openStage(folder: string): Promise<Stage> {
  const upper = join(folder, 'upper');
  for (const name of ['upper', 'work', 'merged'])
    await mkdir(join(folder, name), { recursive: true });
  const { PATH = '' } = process.env;
  return { upper, workdir: '/', user: 'root', env: { PATH } };
}

async function madeFolder({ upper }: Stage, path: string): Promise<string> {
  await mkdir(join(upper, path), { recursive: true });
  return path;
}

async function copy(stage: Stage, text: string, stages: Map<string, Stage>): Promise<void> {
  const [, from, names = ''] = /^(?:--from=(\w+) )?(.*)$/.exec(text) ?? [];
  const sources = names.split(' ');
  const target = join(stage.upper, stage.workdir, sources.pop() ?? '');
  const source = from === undefined ? ROOT : stages.get(from)?.upper;
  if (source === undefined) throw new Error(`there is no stage ${from}`);
  for (const one of sources) {
    // Of several files the target is a folder, as it is of a folder from another stage.
    const isInto = from === undefined && target.endsWith('/');
    const at = isInto ? join(target, one) : target;
    // A folder gives its content.
    await run('cp', ['-aT', join(source, one), at]);
  }
}

async function runStep(stage: Stage, text: string): Promise<void> {
  const { code, text: output } = await outputOf(
    enter(stage, ['sh', '-ec', text], { env: stage.env }),
  );
  if (code !== 0) throw new Error(`RUN ${text} ended with ${code}:\n${output}`);
}

/** Runs a command in a stage; the process of the command is that of the child. */
function enter(
  { upper, workdir, user }: Stage,
  args: readonly string[],
  { env, mounts = '' }: { env: Record<string, string>; mounts?: string },
): ChildProcess {
  const folder = join(upper, '..');
  const script = `M='${folder}/merged'
    mount -t overlay overlay -o 'lowerdir=/,upperdir=${upper},workdir=${folder}/work' "$M"
    ${mounts}
    mount --rbind /proc "$M/proc"; mount --rbind /dev "$M/dev"
    exec chroot "$M" setpriv "$@"`;
  const inside = `cd '${workdir}'; exec "$@"`;
  const ids = [`--reuid=${user}`, `--regid=${user}`, '--init-groups'];
  const confined = ['--no-new-privs', '--bounding-set=-all', '--inh-caps=-all'];
  const privileges = user === 'root' ? ids : [...ids, ...confined];
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const command = [...privileges, 'env', '-i', ...variables, 'sh', '-c', inside, 'sh', ...args];
  return spawn('unshare', ['--mount', 'sh', '-ec', script, 'sh', ...command]);
}

/** What an ENV sets; a value may name a former variable. */
function variablesOf(text: string, known: Record<string, string>): Record<string, string> {
  const pairs = [...text.matchAll(/(\w+)=("[^"]*"|\S+)/g)];
  return Object.fromEntries(
    pairs.map(([, name = '', value = '']) => [
      name,
      value.replaceAll('"', '').replaceAll(/\$(\w+)/g, (_, other) => known[other] ?? ''),
    ]),
  );
}

/** Waits for its end. */
export async function outputOf(child: ChildProcess): Promise<{ code: number; text: string }> {
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (part) => {
      text += part;
    });
  const code = await new Promise<number>((resolve) => child.once('close', resolve));
  return { code, text };
}

/** The first line of its output that matches. @throws Error with the output when it ends before */
export async function lineOf(child: ChildProcess, pattern: RegExp): Promise<RegExpExecArray> {
  let text = '';
  return new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (part) => {
        text += part;
        const found = pattern.exec(text);
        if (found) resolve(found);
      });
    child.once('close', (code) => reject(new Error(`ended with ${code}:\n${text}`)));
  });
}
