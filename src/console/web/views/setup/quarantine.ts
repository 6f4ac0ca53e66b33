/** What cannot be processed until a person releases it, and the releases so far. */
import {
  QUARANTINE_KIND_WORDS,
  quarantined,
  quarantineReasonText,
  release,
} from '../../../../resources/operations/quarantine.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { call, useList } from '../../kit/api.ts';
import { columnsFor } from '../../kit/columns.ts';
import { Order, REASON } from '../../kit/dialog.ts';
import { Card, Code, ListTable, View, WalletLink } from '../../kit/elements.ts';
import { html } from '../../kit/html.ts';
import type { ViewProps } from '../../pages.ts';

type Quarantined = Shown<typeof quarantined>;
type Release = Shown<typeof release>;
type Subject = Pick<Quarantined, 'kind' | 'id'>;

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
        columns=${[...COLUMNS, releaseColumn(again)]}
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

const SUBJECT = {
  kind: { of: ({ kind }: Subject) => QUARANTINE_KIND_WORDS[kind] },
  id: { of: subjectOf },
};

const COLUMNS = columnsFor(quarantined, {
  ...SUBJECT,
  reason: { of: ({ reason }) => quarantineReasonText(reason) },
});
const RELEASE_COLUMNS = columnsFor(release, {
  ...SUBJECT,
  problem: { of: ({ problem }) => quarantineReasonText(problem) },
});

function releaseColumn(done: () => void) {
  return {
    head: 'Action',
    of: ({ kind, id, reason }: Quarantined) => html`<${Order}
    needs=${[]}
      label="Release"
      kind="danger"
      text=${html`${kind === 'observation' ? 'It is processed' : 'The ledger posts it'} as it is,
        although ${quarantineReasonText(reason)}. What fails again is quarantined again.`}
      fields=${[REASON]}
      order=${(values: object) => call('POST', '/api/quarantine/release', { kind, id, ...values })}
      done=${done}
    />`,
  };
}
