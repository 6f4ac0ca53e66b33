/**
 * The Helm chart of config/ by Helm and the schemas of Kubernetes. TEST_HELM names a folder with
 * both, which `test/helm/programs FOLDER` makes; without it these tests are not listed.
 */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { useFolder } from '../harness/folder.ts';

const CONFIG = join(import.meta.dirname, '../../config');
const { TEST_HELM: TOOLS = '' } = process.env;
const run = promisify(execFile);
const folder = useFolder();

const MANIFEST = `# Made from config/helm: vitest run test/helm -u
#
# Two daemons on a Postgres of yours, without Helm. docs/operators.md says who makes its logins.
#
#   kubectl create secret generic tallyhook-owner --from-literal=DATABASE_OWNER_URL=…
#   kubectl create secret generic tallyhook --from-literal=DATABASE_URL=… \\
#     --from-literal=MASTER_KEY=… --from-literal=ADMIN_KEY=… --from-literal=UPSTREAM_CLIENT_SECRET=…
#   kubectl delete job tallyhook-migrations --ignore-not-found      # before an upgrade
#   kubectl apply -f config/kubernetes.yaml
#
# The pods start again until the job of migrations is done. Each daemon runs every role.
`;
const MONITOR = `# Made from config/helm: vitest run test/helm -u
# The operator of Prometheus scrapes the metrics: kubectl apply -f config/servicemonitor.yaml
`;

async function helm(...args: string[]): Promise<string> {
  const { stdout } = await run(join(TOOLS, 'helm'), args, { cwd: CONFIG });
  return stdout.replace(/^# Source: .*\n/gm, '');
}

async function validate(...files: string[]): Promise<string> {
  const program = join(TOOLS, 'validate/bin/kubernetes-validate');
  return (await run(program, ['--strict', ...files])).stdout;
}

it('kubernetes.yaml and servicemonitor.yaml are the Helm chart with its values', async () => {
  await helm('lint', '--strict', 'helm');
  // Only Helm knows its hooks.
  const manifest = (await helm('template', 'tallyhook', 'helm')).replace(
    / {2}annotations:\n(?: {4}helm\.sh\/.*\n)+/,
    '',
  );
  await expect(MANIFEST + manifest).toMatchFileSnapshot(join(CONFIG, 'kubernetes.yaml'));
  const only = ['--set', 'serviceMonitor=true', '-s', 'templates/servicemonitor.yaml'];
  const monitor = await helm('template', 'tallyhook', 'helm', ...only);
  await expect(MONITOR + monitor).toMatchFileSnapshot(join(CONFIG, 'servicemonitor.yaml'));
});

it('What the chart makes is valid by the schemas of Kubernetes, also with every value set', async () => {
  const values = join(folder, 'values.yaml');
  const all = {
    image: 'registry.example/tallyhook:1',
    env: { TALLYHOOK_ROLES: 'gateway,api' },
    settings: { daemon: { drain_ms: 40_000 }, console: { oidc: { client_id: 'a: "b"' } } },
    serviceMonitor: true,
    storageClassName: 'fast',
  };
  await writeFile(values, JSON.stringify(all));
  const file = join(folder, 'all.yaml');
  const text = await helm('template', 'shop', 'helm', '--values', values);
  const documents = parseAllDocuments(text).map((one) => one.toJS());
  const settings = documents.find(({ kind }) => kind === 'ConfigMap').data['settings.yaml'];
  expect(parseAllDocuments(settings)[0]?.toJS()).toEqual(all.settings);
  // Its schema belongs to the operator of Prometheus.
  const others = documents.filter(({ kind }) => kind !== 'ServiceMonitor');
  expect(others).toHaveLength(documents.length - 1);
  await writeFile(file, others.map((one) => JSON.stringify(one)).join('\n---\n'));
  const found = await validate(join(CONFIG, 'kubernetes.yaml'), file);
  expect(found.match(/passed/g)).toHaveLength(4 + 5);

  await writeFile(file, JSON.stringify({ ...others[0], spce: {} }));
  await expect(validate(file)).rejects.toMatchObject({ stdout: expect.stringContaining('spce') });
});
