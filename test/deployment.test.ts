/** The files of config/ for containers: what they ask of a daemon, and what of their platform. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { type Config, loadConfig, requireService } from '../src/daemon/config/config.ts';
import { useFolder } from './harness/folder.ts';

const CONFIG = join(import.meta.dirname, '../config');
const folder = useFolder();
const read = (name: string) => readFileSync(join(CONFIG, name), 'utf8');

/** What a person sets. */
const GIVEN: Record<string, string> = {
  POSTGRES_PASSWORD: 'of-postgres-012345',
  OWNER_PASSWORD: 'of-the-owner-01234',
  DAEMON_PASSWORD: 'of-the-daemon-0123',
  DATABASE_URL: 'postgres://tallyhook_daemon:of-the-daemon-0123@db.example/tallyhook',
  MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
  ADMIN_KEY: `thk_${'a'.repeat(43)}`,
  UPSTREAM_BASE_URL: 'https://api.example',
  UPSTREAM_AUTH_URL: 'https://auth.example',
  UPSTREAM_TX_URL: 'https://tx.example',
  UPSTREAM_CLIENT_ID: 'id',
  UPSTREAM_CLIENT_SECRET: 'secret',
};

type Variables = Record<string, string>;

/** Loads it as a start in the image does. */
function configOf(env: Variables): Config {
  const inImage = { ...env, NODE_ENV: 'production' };
  const config = loadConfig(inImage);
  requireService(config, inImage);
  return config;
}

/** How long a daemon takes to stop. */
const stopMs = ({ daemon }: Config) => daemon.unready_ms + daemon.drain_ms;

describe('compose.yaml', () => {
  const text = read('compose.yaml').replaceAll(/\$\{(\w+):\?\}/g, (_, name) => GIVEN[name] ?? '');
  const { services } = parse(text, { merge: true });
  const { postgres, setup, migrate, tallyhook } = services;

  it('starts a daemon with the login that setup makes, after setup and migrations', () => {
    const config = configOf(tallyhook.environment);
    expect(config.databaseUrl).toBe(
      'postgres://tallyhook_daemon:of-the-daemon-0123@postgres/tallyhook',
    );
    expect(Object.keys(tallyhook.depends_on)).toEqual(['migrate']);
    expect(Object.keys(migrate.depends_on)).toEqual(['setup']);
  });

  it('gives the password of the superuser to setup alone, and that of the owner not to the daemon', () => {
    const knows = (secret: string) =>
      Object.entries({ postgres, setup, migrate, tallyhook }).flatMap(([name, service]) =>
        JSON.stringify(service).includes(secret) ? [name] : [],
      );
    expect(knows('of-postgres-012345')).toEqual(['postgres', 'setup']);
    expect(knows('of-the-owner-01234')).toEqual(['setup', 'migrate']);
  });

  it('lets a daemon stop by itself before it is killed', () => {
    const graceMs = Number.parseInt(tallyhook.stop_grace_period, 10) * 1_000;
    expect(graceMs).toBeGreaterThan(stopMs(configOf(tallyhook.environment)));
  });
});

describe('kubernetes.yaml', () => {
  const documents = parseAllDocuments(read('kubernetes.yaml')).map((one) => one.toJS());
  const of = (kind: string) => documents.find((one) => one?.kind === kind);
  const pod = of('StatefulSet').spec.template.spec;
  const [container] = pod.containers;
  const job = of('Job').spec.template.spec;

  /** The variables of a container; each secret is in the file that its variable names. */
  function variablesOf({ env }: { env: { name: string; value: string }[] }): Variables {
    return Object.fromEntries(
      env.map(({ name, value }) => {
        if (!name.endsWith('_FILE')) return [name, value];
        const secret = name.slice(0, -'_FILE'.length);
        expect(value).toBe(`/run/secrets/tallyhook/${secret}`);
        const path = join(folder, secret);
        writeFileSync(path, `${GIVEN[secret] ?? GIVEN.DATABASE_URL}\n`);
        return [name, path];
      }),
    );
  }

  it('starts a daemon with secrets in files, and migrates with the owner that the daemon lacks', () => {
    const env = variablesOf(container);
    const config = configOf(env);
    expect(config).toMatchObject({ databaseUrl: GIVEN.DATABASE_URL, databaseOwnerUrl: undefined });
    expect(config.http.metrics_port).toBe(
      container.ports.find(({ name }: { name: string }) => name === 'metrics').containerPort,
    );
    expect(Object.keys(variablesOf(job.containers[0]))).toEqual(['DATABASE_OWNER_URL_FILE']);
    expect(job.containers[0].args).toEqual(['tallyhook', 'migrate']);
  });

  it('keeps the variables that Kubernetes makes of a service from a pod, which would refuse them', () => {
    const env = { ...variablesOf(container), TALLYHOOK_PORT_8080_TCP_ADDR: '10.0.0.1' };
    expect(() => configOf(env)).toThrow(
      expect.objectContaining({
        detail: expect.stringMatching(/^TALLYHOOK_PORT_8080_TCP_ADDR is n/),
      }),
    );
    expect([pod.enableServiceLinks, job.enableServiceLinks]).toEqual([false, false]);
  });

  it('confines each pod as the strictest standard of Kubernetes asks', () => {
    for (const { securityContext, containers } of [pod, job]) {
      expect(securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      expect(containers[0].securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
    }
    // What the image writes to, beside the folder of the counter.
    const writable = container.volumeMounts.filter((one: { readOnly?: true }) => !one.readOnly);
    expect(writable.map((one: { mountPath: string }) => one.mountPath)).toEqual(['/data', '/tmp']);
    const [claim] = of('StatefulSet').spec.volumeClaimTemplates;
    expect(claim.metadata.name).toBe('data');
  });

  it('lets a daemon stop by itself after load balancers have noticed, before it is killed', () => {
    const [, seconds] = container.lifecycle.preStop.exec.command;
    const config = configOf(variablesOf(container));
    const graceMs = pod.terminationGracePeriodSeconds * 1_000;
    expect(graceMs).toBeGreaterThan(Number(seconds) * 1_000 + stopMs(config));
  });

  it('waits longer for a start than a start waits for Postgres', () => {
    const { periodSeconds, failureThreshold } = container.startupProbe;
    const { database } = configOf(variablesOf(container));
    expect(periodSeconds * failureThreshold * 1_000).toBeGreaterThan(database.start_wait_ms);
    const probes = [container.startupProbe, container.readinessProbe, container.livenessProbe];
    const paths = probes.map(({ httpGet }) => httpGet.path);
    expect(paths).toEqual(['/healthz', '/readyz', '/healthz']);
  });

  it('gives a pod the memory that both processes may use', () => {
    const { NODE_OPTIONS: options = '' } = variablesOf(container);
    const heapMiB = Number(/--max-old-space-size=(\d+)/.exec(options)?.[1]);
    const limitMiB = Number(/^(\d+)Mi$/.exec(container.resources.limits.memory)?.[1]);
    expect(limitMiB).toBeGreaterThanOrEqual(2 * (heapMiB + 200));
  });
});

it('The chart has the version of the daemon', () => {
  const { version } = JSON.parse(readFileSync(join(CONFIG, '../package.json'), 'utf8'));
  expect(parse(read('helm/Chart.yaml'))).toMatchObject({ version, appVersion: version });
});
