/** One token: who holds it, what the service says, and how it moved; or all of a contract. */

import { type token, tokenMovement } from '../../../../resources/ledger/token.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { useData, useList } from '../../kit/api.ts';
import { columnsFor } from '../../kit/columns.ts';
import {
  Card,
  Code,
  Facts,
  Failed,
  ListTable,
  Pending,
  Time,
  View,
  WalletLink,
} from '../../kit/elements.ts';
import { wordsOf } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';
import type { ViewProps } from '../../pages.ts';
import { Contract, TokenState } from './tokens.ts';

type Token = Shown<typeof token>;
type Movement = Shown<typeof tokenMovement>;

export default function TokenOrContract({ ids: [contract = '', token] }: ViewProps) {
  return token === undefined
    ? html`<${Contract} id=${contract} />`
    : html`<${TokenView} contract=${contract} token=${token} />`;
}

function TokenView({ contract, token }: { contract: string; token: string }) {
  const path = `/api/tokens/${encodeURIComponent(contract)}/${encodeURIComponent(token)}`;
  const { data, problem, reload } = useData<Token>(path, 30_000);
  if (!data) return html`<${Pending} problem=${problem} retry=${reload} />`;
  return html`<${View}
    title=${html`Token ${token} <${TokenState} of=${data} />`}
    lead=${html`of <a href=${`/tokens/${contract}`}>contract ${contract}</a>`}
  >
    <${Failed} problem=${problem} retry=${reload} />
    <${Card} title="As last observed"><${Facts} pairs=${factsOf(data)} /><//>
    <${Card} title="How it moved"><${History} path=${`${path}/history`} /><//>
  <//>`;
}

const wallet = (addr: string | null) => addr && html`<${WalletLink} addr=${addr} whole />`;

function factsOf(token: Token): [string, unknown][] {
  const { absent_since: absent, last_tx_hash: hash } = token;
  return [
    ['Owner', wallet(token.owner)],
    ['Creator', wallet(token.creator)],
    ['Not found since', absent && html`<${Time} at=${absent} exact />`],
    ['On a market', token.locked === null ? null : token.locked ? 'yes: it is locked' : 'no'],
    ['URI', token.uri],
    ['Metadata', token.metadata],
    ['Extra data', token.extra_data],
    ['Last transaction', hash && html`<${Code} text=${hash} whole />`],
    ['Created', token.created_text && `${token.created_text} (text of the service)`],
    ['Owned since', token.owned_text && `${token.owned_text} (text of the service)`],
    ['Last observed', html`<${Time} at=${token.observed_at} />`],
  ];
}

function sourceOf(kind: string): string {
  const isOwn = kind === 'opening' || kind === 'reversal';
  return isOwn ? wordsOf(kind) : `${wordsOf(kind)}, made elsewhere`;
}

function History({ path }: { path: string }) {
  const list = useList<Movement>(`${path}?limit=50`);
  return html`<${ListTable}
    list=${list}
    columns=${COLUMNS}
    keyOf=${({ seq }: Movement) => seq}
    empty="The ledger has no movement of this token."
  />`;
}

const COLUMNS = columnsFor(tokenMovement, {
  effective_at: { of: ({ effective_at: at }) => html`<${Time} at=${at} exact />` },
  kind: {
    of: ({ kind, operation_id: id }) =>
      id ? html`<a href=${`/operations/${id}`}>${wordsOf(kind)}</a>` : sourceOf(kind),
  },
});
