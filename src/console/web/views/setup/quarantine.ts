/** What cannot be processed until a person releases it, and the releases so far. */
import { call, useList } from '../../kit/api.ts';
import { Order, REASON } from '../../kit/dialog.ts';
import { Amount, Card, Code, ListTable, Time, View, WalletLink } from '../../kit/elements.ts';
import { html } from '../../kit/html.ts';
import type { ViewProps } from '../../pages.ts';

interface Subject {
  kind: string;
  id: string;
}
interface Quarantined extends Subject {
  reason: string;
  since: string;
  amount: string | null;
}
interface Release extends Subject {
  n: string;
  problem: string;
  released_at: string;
  released_by: string;
  reason: string;
}

const KINDS: Record<string, string> = {
  operation: 'posting of an operation',
  posting_request: 'posting of a drift',
  observed_holder: 'holder of a token',
  observation: 'observation',
};

/** Reasons that are codes; others are sentences. */
const REASONS: Record<string, string> = {
  foreign_tx_app_no: 'the answer has the number of another app',
  repeated_tx_log_no: 'another operation has the same number of the service',
};
const reasonText = (reason: string) => REASONS[reason] ?? reason;

export default function Quarantine(_: ViewProps) {
  const list = useList<Quarantined>('/api/quarantine?limit=50');
  const releases = useList<Release>('/api/quarantine/releases?limit=20');
  const again = () => {
    list.reload();
    releases.reload();
  };
  return html`<${View}
    title="Quarantine"
    lead="What cannot be posted or processed. Everything else goes on; these wait for a person."
  >
    <${Card} title="Quarantined">
      <${ListTable}
        list=${list}
        columns=${[...COLUMNS, release(again)]}
        keyOf=${({ kind, id }: Quarantined) => `${kind} ${id}`}
        empty="Nothing is quarantined."
      />
    <//>
    <${Card} title="Releases">
      <${ListTable}
        list=${releases}
        columns=${RELEASE_COLUMNS}
        keyOf=${({ n }: Release) => n}
        empty="Nothing was released yet."
      />
    <//>
  <//>`;
}

function subjectOf({ kind, id }: Subject) {
  if (kind === 'operation') return html`<${Code} text=${id} href=${`/operations/${id}`} />`;
  const addr = /^wallet:(.+)$/.exec(id)?.[1];
  return addr ? html`<${WalletLink} addr=${addr} />` : html`<${Code} text=${id} />`;
}

const kindColumn = { head: 'What', of: ({ kind }: Subject) => KINDS[kind] ?? kind };

const COLUMNS = [
  kindColumn,
  { head: 'Of', of: subjectOf },
  { head: 'Why', of: ({ reason }: Quarantined) => reasonText(reason) },
  { head: 'Since', of: ({ since }: Quarantined) => html`<${Time} at=${since} />` },
  {
    head: 'Amount',
    number: true,
    of: ({ amount }: Quarantined) => html`<${Amount} of=${amount} />`,
  },
];

function release(done: () => void) {
  return {
    head: 'Action',
    of: ({ kind, id, reason }: Quarantined) => html`<${Order}
      label="Release"
      kind="danger"
      text=${html`${kind === 'observation' ? 'It is processed' : 'The ledger posts it'} as it is,
        although ${reasonText(reason)}. What fails again is quarantined again.`}
      fields=${[REASON]}
      order=${(values: object) => call('POST', '/api/quarantine/release', { kind, id, ...values })}
      done=${done}
    />`,
  };
}

const RELEASE_COLUMNS = [
  kindColumn,
  { head: 'Of', of: subjectOf },
  { head: 'Was quarantined for', of: ({ problem }: Release) => reasonText(problem) },
  { head: 'Released', of: ({ released_at: at }: Release) => html`<${Time} at=${at} />` },
  { head: 'By', of: ({ released_by: owner }: Release) => owner },
  { head: 'Reason', of: ({ reason }: Release) => reason },
];
