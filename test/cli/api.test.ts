/** Commands that the API's document makes, run as processes against a served API. */
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { describeApi } from '../../src/api/api.ts';
import { addApiCommands } from '../../src/cli/api/commands.ts';
import { makeProgram } from '../../src/cli/commands.ts';
import { useServedDrifts } from './served-drifts.ts';

const { rig, as } = useServedDrifts();
const run = (...args: string[]) => as('ann', ...args);

const leaves = (command: Command): Command[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);

describe('The commands of the API', () => {
  it('Every operation of the document has a name of its own', () => {
    const names = Object.values(describeApi().paths ?? {}).flatMap((methods) =>
      Object.values(methods).map(({ operationId }: { operationId?: string }) => operationId),
    );
    expect(names.length).toBeGreaterThan(70);
    expect(new Set(names).size).toBe(names.length);
    expect(names.filter((name) => !name || name.includes('undefined'))).toEqual([]);
  });

  it('Every command has a description, --json where it asks the API, and an example', async () => {
    const program = makeProgram();
    const written = new Set(leaves(program));
    await addApiCommands(program);
    const made = leaves(program).filter((one) => !written.has(one));
    expect(made.length).toBeGreaterThan(40);
    for (const command of made) {
      let help = '';
      command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
      expect(help).toContain('--json');
      expect(help).toContain('npx tallyhook ');
      expect(command.description()).not.toBe('');
    }
  });

  it('An order that needs a reason says what becomes of it', async () => {
    const program = makeProgram();
    await addApiCommands(program);
    const orders = leaves(program).flatMap(({ options }) =>
      options.filter(({ long, mandatory }) => long === '--reason' && mandatory),
    );
    expect(orders.length).toBeGreaterThan(5);
    expect(orders.filter(({ description }) => !/ (stored|kept) /.test(description))).toEqual([]);
  });

  it('A list prints the columns of its definition, one thing alone prints its fields', async () => {
    const { addr, id } = await rig.drifting(-3n);
    const listed = await run('wallets', 'list');
    const [heading = '', ...rows] = listed.text.split('\n');
    const place = heading.indexOf('ledger_balance');
    expect(heading).toMatch(/^addr {2,}/);
    expect(rows.find((row) => row.startsWith(addr))?.slice(place)).toMatch(/^1000 /);
    expect(JSON.parse((await run('wallets', '--json', '--limit', '1')).text).data).toHaveLength(1);
    const shown = await run('wallets', 'show', addr);
    expect(shown.text).toContain(`addr: ${addr}\n`);
    expect((await run('drifts', 'list')).text).toContain(id);
  });

  it('A list of reports begins with their ids, as each thing does that has one', async () => {
    const period = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' };
    const { body } = await rig.api.call('POST', '/api/reports', {
      body: { kind: 'reconciliation', ...period },
    });
    const { text } = await run('reports', 'list');
    expect(text).toContain(`${body.id}  2026-01-01T00:00:00.000Z  `);
  });

  it('No command is made whose body no option could give', async () => {
    const { code, text } = await run('operations', 'create');
    expect(code).toBe(1);
    expect(text).toContain('too many arguments');
  });

  it('An order sends its options as the body, and a refusal is one line', async () => {
    const { id } = await rig.drifting(4n);
    const assigned = await run('drifts', 'assign-many', '--ids', id, '--assignee', 'cleo');
    expect(assigned.text).toContain('cleo');
    const refused = await run('endpoints', 'create', '--endpoint-url', 'nonsense');
    expect(refused.code).toBe(1);
    expect(refused.text).toMatch(/^the daemon answered 4\d\d /);
    expect(refused.text.trim().split('\n')).toHaveLength(1);
  });

  it('A word that is no command is refused with what is close to it', async () => {
    const { code, text } = await run('walets');
    expect(code).toBe(1);
    expect(text).toContain('wallets');
  });
});
