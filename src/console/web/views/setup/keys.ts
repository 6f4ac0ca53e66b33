/** API keys: who may do what, created, limited and revoked. */
import { type createdKey, key, SCOPE_WORDS, SCOPES } from '../../../../resources/admin/key.ts';
import type { portalLink } from '../../../../resources/admin/portal-link.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { call, useList } from '../../kit/api.ts';
import { columnsFor } from '../../kit/columns.ts';
import { type Field, Order, type Values } from '../../kit/dialog.ts';
import { Card, Choice, Code, ListTable, Pill, Time, View } from '../../kit/elements.ts';
import { amountText, instantOf, isPast, wordsOf } from '../../kit/format.ts';
import { html, useState } from '../../kit/html.ts';
import { setQuery, usePlace } from '../../kit/router.ts';
import { BASE_PATH } from '../../kit/shell.ts';
import type { ViewProps } from '../../pages.ts';

type Key = Shown<typeof key>;

const FIELDS: readonly Field[] = [
  { name: 'name', label: 'Name', hint: 'What uses it, such as shop backend' },
  {
    name: 'owner',
    label: 'Owner',
    hint: 'The person or team. Two approvals need two owners; idempotency keys belong to one',
  },
  ...SCOPES.map((scope): Field => {
    return { name: `scope_${scope}`, label: `${scope}: ${SCOPE_WORDS[scope]}`, type: 'check' };
  }),
  {
    name: 'kinds',
    label: 'Only these kinds of write',
    optional: true,
    hint: 'Such as give, transfer, mint; without it every kind',
  },
  {
    name: 'operators',
    label: 'Only these operators',
    optional: true,
    hint: 'Operator numbers that a give may use, such as 1, 2',
  },
  {
    name: 'amount_per_call',
    label: 'Most per write',
    optional: true,
    hint: 'In whole tokens, fee included',
  },
  { name: 'amount_per_day', label: 'Most within 24 hours', optional: true },
  { name: 'expires', label: 'Expires', type: 'datetime-local', optional: true },
];

const LINK_FIELDS: readonly Field[] = [
  { name: 'owner', label: 'Subscriber', hint: 'Whose endpoints it shows' },
  {
    name: 'expires',
    label: 'Expires',
    type: 'datetime-local',
    optional: true,
    hint: 'Empty: in seven days',
  },
];

const listOf = (text: string | undefined) => text?.split(/[\s,]+/).filter(Boolean);

function keyInput(values: Values) {
  const limits = Object.fromEntries(
    Object.entries({
      kinds: listOf(values.kinds),
      operators: listOf(values.operators),
      amount_per_call: values.amount_per_call,
      amount_per_day: values.amount_per_day,
    }).filter(([, value]) => value !== undefined),
  );
  return {
    name: values.name,
    owner: values.owner,
    scopes: SCOPES.filter((scope) => values[`scope_${scope}`]),
    ...(Object.keys(limits).length > 0 ? { limits } : {}),
    expires_at: values.expires && instantOf(values.expires),
  };
}

export default function Keys(_: ViewProps) {
  const list = useList<Key>('/api/keys?limit=100');
  const [made, setMade] = useState<Made | undefined>(undefined);
  const isAll = usePlace().query.get('show') === 'all';
  const rows = list.rows?.filter((key) => isAll || stateOf(key) === 'valid');
  const create = async (values: Values) => {
    const { key } = await call<Shown<typeof createdKey>>('POST', '/api/keys', keyInput(values));
    setMade({ what: 'key', secret: key });
  };
  const link = async ({ owner, expires }: Values) => {
    const input = { owner, expires_at: expires && instantOf(expires) };
    const { url } = await call<Shown<typeof portalLink>>('POST', '/api/portal-links', input);
    setMade({ what: 'portal link', secret: url });
  };
  const actions = html`<${Order}
      needs=${[]}
      label="Create a key"
      text="Give each app and each person a key of its own. It is shown once."
      fields=${FIELDS}
      order=${create}
      done=${list.reload}
    />
    <${Order}
      needs=${[]}
      label="Make a portal link"
      kind="quiet"
      text="It signs a subscriber into their endpoints and nothing else. Revoke its key to end it."
      fields=${LINK_FIELDS}
      order=${link}
      done=${list.reload}
    />`;
  return html`<${View} title="Keys" lead="Who may call the API and the gateway." actions=${actions}>
    ${made && html`<${Secret} made=${made} done=${() => setMade(undefined)} />`}
    <${Card}>
      <div class="filters">
        <${Choice}
          name="Show"
          value=${isAll ? 'all' : ''}
          options=${[['', 'valid keys'], ['all', 'also revoked and expired ones']]}
          onChange=${(value: string) => setQuery({ show: value })}
        />
      </div>
    <//>
    <${Card}>
      <${ListTable}
        list=${{ ...list, rows }}
        file=${key}
        columns=${[...COLUMNS, revocation(list.reload)]}
        keyOf=${({ id }: Key) => id}
        empty="No valid key on this page of the list."
      />
    <//>
  <//>`;
}

interface Made {
  what: 'key' | 'portal link';
  secret: string;
}

function Secret({ made: { what, secret }, done }: { made: Made; done: () => void }) {
  const url = location.origin + BASE_PATH;
  const hide = html`<button type="button" class="quiet" onClick=${done}>I have stored it</button>`;
  return html`<${Card} tone="good" title=${`The new ${what}`} aside=${hide}>
    <p>It is shown this once. Only the hash of the key is stored.</p>
    <p><${Code} text=${secret} whole /></p>
    ${
      what === 'key' &&
      html`<pre tabindex="0">curl -H 'authorization: Bearer …' ${url}/api/status</pre>`
    }
  <//>`;
}

function stateOf({ revoked_at: revoked, expires_at: expires }: Key): string {
  if (revoked !== null) return 'revoked';
  return expires !== null && isPast(expires) ? 'expired' : 'valid';
}

/** An amount that no line breaks. */
const wholeText = (amount: string) => amountText(amount).replaceAll(' ', '\u00a0');

/** Limits in words; none for a key without. */
function limitsText({ limits }: Key): string {
  if (!limits) return 'none';
  const { kinds, operators, amount_per_call: call, amount_per_day: day } = limits;
  return [
    kinds && `only ${kinds.map(wordsOf).join(', ')}`,
    operators && `operators ${operators.join(', ')}`,
    call && `${wholeText(call)} per write`,
    day && `${wholeText(day)} per day`,
  ]
    .filter(Boolean)
    .join('; ');
}

const neverOr = (at: string | null) => (at ? html`<${Time} at=${at} />` : 'never');

const COLUMNS = columnsFor(key, {
  name: {
    of: (row) => html`<span title=${row.id}>${row.name}</span>
      ${stateOf(row) !== 'valid' && html` <${Pill}>${stateOf(row)}<//>`}`,
  },
  scopes: { of: ({ scopes }) => scopes.join(', ') },
  limits: { of: limitsText },
  expires_at: { of: ({ expires_at: at }) => neverOr(at) },
  last_used_at: { of: ({ last_used_at: at }) => neverOr(at) },
});

function revocation(done: () => void) {
  return {
    head: 'Action',
    of: (key: Key) =>
      stateOf(key) === 'valid' &&
      html`<${Order}
    needs=${[]}
        label="Revoke"
        kind="danger"
        text=${html`Every daemon refuses <b>${key.name}</b> of <b>${key.owner}</b> within one
          second, and its queued writes are not sent. A revoked key cannot be used again.`}
        order=${() => call('DELETE', `/api/keys/${key.id}`)}
        done=${done}
      />`,
  };
}
