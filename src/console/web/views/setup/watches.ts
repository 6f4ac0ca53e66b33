/** What is polled on request: wallets, contracts and tokens, one by one or many at once. */

import { type observationAge, watch } from '../../../../resources/admin/watch.ts';
import type { ShownOf } from '../../../../resources/fields.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { call, Problem, useData, useList } from '../../kit/api.ts';
import { columnsFor } from '../../kit/columns.ts';
import { Order, type Values } from '../../kit/dialog.ts';
import { Card, ListTable, View, WalletLink } from '../../kit/elements.ts';
import { durationText } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';
import type { ViewProps } from '../../pages.ts';
import { BulkCard } from './bulk.ts';
import { targetOf } from './targets.ts';

type Watch = Shown<typeof watch>;

const FIELDS = [
  {
    name: 'target',
    label: 'Wallet, contract or token',
    hint: 'A wallet as 0x…, a contract as its number, a token as contract/token such as 12/34',
  },
];

async function add({ target = '' }: Values): Promise<void> {
  const input = targetOf(target);
  if (!input) throw new Problem(0, '', `${target} is no wallet 0x…, contract 12 or token 12/34`);
  await call('POST', '/api/watches', input);
}

export default function Watches(_: ViewProps) {
  const path = '/api/watches?limit=50';
  const list = useList<Watch>(path);
  const age = useData<ShownOf<typeof observationAge>>(path, 30_000);
  const actions = html`<${Order}
    label="Watch"
    text="It is polled from now on. Its first observation opens it in the ledger."
    fields=${FIELDS}
    order=${add}
    done=${list.reload}
  />`;
  const maxMs = age.data?.observation_age_max_ms;
  const lead = html`While the service answers, none of these goes without a poll for longer than
    <b class="nowrap"> ${maxMs === undefined ? '…' : durationText(maxMs)}</b>. More targets make it
    longer.`;
  return html`<${View} title="Watches" lead=${lead} actions=${actions}>
    <${BulkCard} done=${list.reload} />
    <${Card}>
      <${ListTable}
        list=${list}
        file=${watch}
        columns=${[...COLUMNS, removal(list.reload)]}
        keyOf=${({ id }: Watch) => id}
        empty="Nothing is watched. What writes through the gateway touch is polled anyway."
      />
    <//>
  <//>`;
}

function targetText({ kind, addr, contract_id: contract, token_id: token }: Watch) {
  if (addr !== null) return html`<${WalletLink} addr=${addr} />`;
  if (kind === 'contract') return `contract ${contract}`;
  return html`<a href=${`/tokens/${contract}/${token}`}>token ${contract}/${token}</a>`;
}

const COLUMNS = columnsFor(watch, {
  id: null,
  addr: { head: 'Target', of: targetText },
  contract_id: null,
  token_id: null,
});

function removal(done: () => void) {
  return {
    head: 'Action',
    of: ({ id, addr, contract_id: contract, token_id: token }: Watch) => html`<${Order}
      label="Remove"
      kind="quiet"
      text=${html`<span class="break">${addr ?? [contract, token].filter(Boolean).join('/')}</span>
        is polled only while an operation touches it. What was observed is kept.`}
      order=${() => call('DELETE', `/api/watches/${id}`)}
      done=${done}
    />`,
  };
}
