/** The list of observed wallets, and a way to one of them by its address. */

import { wallet } from '../../../../resources/ledger/wallet.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { useList, withQuery } from '../../kit/api.ts';
import { columnsFor } from '../../kit/columns.ts';
import { valuesOf } from '../../kit/dialog.ts';
import { Amount, Card, Chip, ListTable, Pill, State, View } from '../../kit/elements.ts';
import { html } from '../../kit/html.ts';
import { go, setQuery, usePlace } from '../../kit/router.ts';
import type { ViewProps } from '../../pages.ts';

type Wallet = Shown<typeof wallet>;

/** An observation that agrees apart from open drifts is explained, but the wallet still drifts. */
export function WalletState({ of: { verdict, drift } }: { of: Wallet }) {
  if (verdict === 'vanished') return html`<${Pill} tone="bad">vanished<//>`;
  return verdict === 'drifting' || drift !== '0'
    ? html`<${Pill} tone="bad">drifting<//>`
    : html`<${State} of=${verdict} />`;
}

export default function Wallets(_: ViewProps) {
  const { query } = usePlace();
  const stale = query.get('stale') ?? '';
  const vanished = query.get('vanished') ?? '';
  const list = useList<Wallet>(
    withQuery('/api/wallets', { limit: '100', stale, vanished }),
    ({ addr }) => addr,
  );
  const find = (event: Event) => {
    const { addr } = valuesOf(event);
    if (addr) go(`/wallets/${encodeURIComponent(addr)}`);
  };
  return html`<${View}
    title="Wallets"
    lead="Every wallet that is polled: what the ledger says, and what the service showed last."
  >
    <${Card}>
      <form class="filters" onSubmit=${find} role="search">
        <label class="field grow">
          <span>Address of a wallet</span>
          <input name="addr" type="search" placeholder="0x…" spellcheck=${false} required />
        </label>
        <button type="submit">Open</button>
        ${
          stale &&
          html`<${Chip}
            text="Only those not observed lately"
            remove=${() => setQuery({ stale: '' })}
          />`
        }
        ${
          vanished &&
          html`<${Chip}
            text="Only those that the service no longer shows"
            remove=${() => setQuery({ vanished: '' })}
          />`
        }
      </form>
    <//>
    <${Card}>
      <${ListTable}
        list=${list}
        file=${wallet}
        columns=${COLUMNS}
        keyOf=${({ addr }: Wallet) => addr}
        empty=${
          vanished
            ? 'The service shows every wallet that holds a balance.'
            : stale
              ? 'Every wallet was observed lately.'
              : 'No wallet is observed yet. Watch one, or send a write that touches one.'
        }
      />
    <//>
  <//>`;
}

const COLUMNS = columnsFor(wallet, {
  verdict: { of: (row) => html`<${WalletState} of=${row} />` },
  drift: {
    of: ({ addr, drift }) =>
      drift === '0'
        ? html`<${Amount} of="0" />`
        : html`<a href=${`/drifts?addr=${addr}`}><${Amount} of=${drift} signed /></a>`,
  },
  in_flight: { of: ({ in_flight: of }) => html`<${Amount} of=${of} signed />` },
});
