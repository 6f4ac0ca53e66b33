/** The frame of the console: sign-in, navigation, and the view that belongs to the address. */
import {
  isSubscriber,
  loadSession,
  type Problem,
  pause,
  problemOf,
  sessionOf,
  signIn,
  signOut,
  useData,
  useWaiting,
  whenSessionEnds,
  whenWhole,
} from './kit/api.ts';
import { type Field, Form, valuesOf } from './kit/dialog.ts';
import { Failed, Loading, Pill, State } from './kit/elements.ts';
import { placeOf } from './kit/find.ts';
import { instantText, setZone, shortText, zoneOfPage } from './kit/format.ts';
import {
  type ComponentType,
  html,
  render,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from './kit/html.ts';
import { followLinks, go, usePlace } from './kit/router.ts';
import { BASE_PATH, insidePath, meta } from './kit/shell.ts';
import { isOfBooks, NAVIGATION, type ViewProps } from './pages.ts';

type Loader = () => Promise<{ default: ComponentType<ViewProps> }>;

/** The view of a list, and that of one of its subjects, by the first segment of the path. */
const VIEWS: Record<string, readonly [list: Loader, one?: Loader]> = {
  '': [() => import('./views/overview.ts')],
  operations: [
    () => import('./views/operations/operations.ts'),
    () => import('./views/operations/operation.ts'),
  ],
  endpoints: [
    () => import('./views/webhooks/endpoints.ts'),
    () => import('./views/webhooks/endpoint.ts'),
  ],
  deliveries: [
    () => import('./views/webhooks/deliveries.ts'),
    () => import('./views/webhooks/delivery.ts'),
  ],
  events: [() => import('./views/webhooks/events.ts')],
  watches: [() => import('./views/setup/watches.ts')],
  keys: [() => import('./views/setup/keys.ts')],
  quarantine: [() => import('./views/setup/quarantine.ts')],
  settings: [() => import('./views/setup/settings.ts')],
  audit: [() => import('./views/setup/audit.ts')],
  drifts: [() => import('./views/drifts/drifts.ts'), () => import('./views/drifts/drift.ts')],
  wallets: [() => import('./views/ledger/wallets.ts'), () => import('./views/ledger/wallet.ts')],
  operators: [() => import('./views/drifts/operators.ts')],
  tokens: [() => import('./views/ledger/tokens.ts'), () => import('./views/ledger/token.ts')],
  ledger: [() => import('./views/ledger/ledger.ts')],
  reports: [() => import('./views/ledger/reports.ts'), () => import('./views/ledger/report.ts')],
  periods: [() => import('./views/ledger/periods.ts')],
};

const segmentsOf = (path: string) => path.split('/').filter(Boolean).map(decoded);
const isPage = (path: string) => path === '/' || Object.hasOwn(VIEWS, segmentsOf(path)[0] ?? '');

/** A part of an address that a person has typed may be wrongly encoded. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function App() {
  setZone(isOfBooks(segmentsOf(usePlace().path)[0] ?? '') ? sessionOf()?.time_zone : undefined);
  const [problem, setProblem] = useState<string | undefined>(sessionOf() ? undefined : whyNot);
  useEffect(() => {
    // At the form already, its own message is enough.
    whenSessionEnds((why) => setProblem((old) => old ?? why));
    followLinks(isPage);
  }, []);
  if (problem !== undefined)
    return html`<${KeyForm} why=${problem} done=${() => setProblem(undefined)} />`;
  return html`<a class="skip" href="#main">Skip to the content</a>
    <${Head} />
    <main id="main" tabindex="-1">
      <p class="zone muted">Times are in ${zoneOfPage()}.</p>
      <${Opening} />
    </main>`;
}

function KeyForm({ why, done }: { why: string; done: () => void }) {
  const order = ({ key = '' }) => signIn(key);
  const issuer = meta('sign-in');
  const here = encodeURIComponent(
    (insidePath(location.pathname) ?? location.pathname) + location.search,
  );
  const hint = 'It begins with thk_';
  const fields: Field[] = [
    { name: 'key', label: 'A key with the scope read', type: 'password', hint },
  ];
  return html`<main class="gate">
    <h1>Tallyhook</h1>
    <p class="lead">
      Records every write to the token service, reconciles operations, ledger and observations, and
      sends signed webhooks.
    </p>
    <section class="card">
      ${why && html`<p class="notice bad" role="alert">${why}</p>`}
      ${
        issuer &&
        html`<p>
          <a class="button" href=${`/sign-in?to=${here}`}>Sign in with ${issuer}</a>
        </p>
        <p class="muted">Or with a key:</p>`
      }
      <${Form} fields=${fields} label="Sign in" order=${order} done=${done} />
      <p class="muted">
        You are signed in in all tabs of this browser, for twelve hours at most. Each person uses a
        key of their own: some decisions need two.
      </p>
    </section>
  </main>`;
}

/** What the head shows of the status. */
interface Status {
  service: { state: string };
  freeze: { reason: string } | null;
}

function Head() {
  const { path } = usePlace();
  const [open, setOpen] = useState(false);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  useEffect(() => setOpen(false), [path]);
  const first = segmentsOf(path)[0] ?? '';
  const isHere = (href: string) => segmentsOf(href)[0] === (first || undefined);
  return html`<header class="head">
    <a class="brand" href="/">Tallyhook</a>
    <button
      type="button"
      class="quiet menu"
      aria-expanded=${open}
      aria-controls="navigation"
      onClick=${() => setOpen(!open)}
    >
      Menu
    </button>
    <div class="head-state">
      ${!isSubscriber() && html`<${ServiceState} />`}
      <span class="muted" title=${`signed in until ${shownUntil()}`}>${sessionOf()?.owner}</span>
      <button type="button" class="quiet" onClick=${() => signOut().catch(setProblem)}>
        Sign out
      </button>
      ${problem && html`<span class="pill bad" role="alert">${problem.message}</span>`}
    </div>
    <nav id="navigation" class=${open ? 'open' : ''} aria-label="Pages">
      ${!isSubscriber() && html`<${Find} />`}
      ${navigation().map(
        ([group, links]) => html`<div class="group">
          <span class="group-name">${group}</span>
          ${links.map(
            ([href, text]) =>
              html`<a href=${href} aria-current=${isHere(href) ? 'page' : undefined}>${text}</a>`,
          )}
        </div>`,
      )}
    </nav>
  </header>`;
}

/** One field for all that has a name. */
function Find() {
  const find = (event: Event) => {
    const { named = '' } = valuesOf(event);
    (event.target as HTMLFormElement).reset();
    go(placeOf(named));
  };
  const what =
    'Id of an operation, drift, endpoint, delivery, event or report; number, hash, address, ' +
    'contract/token or reference';
  return html`<form class="find" onSubmit=${find}>
    <input name="named" type="search" placeholder="Find" aria-label=${what} title=${what} />
  </form>`;
}

const shownUntil = () => instantText(sessionOf()?.expires_at ?? '');

function ServiceState() {
  const { data, problem } = useData<Status>('/api/status', 10_000, true);
  return html`
    ${
      !problem &&
      html`<span class="muted">service</span>
        ${data ? html` <${State} of=${data.service.state} />` : html` <${Pill}>…<//>`}`
    }
    ${data?.freeze && html`<span class="pill bad">writes are frozen</span>`}
    ${
      problem &&
      html`<span class="pill bad">
        ${problem.status === 0 ? 'daemon does not respond' : problem.message}
      </span>`
    }
  `;
}

/** What is for the one who is signed in. */
function navigation(): typeof NAVIGATION {
  if (!isSubscriber()) return NAVIGATION;
  return [['Webhooks', [['/endpoints', 'Endpoints']]]];
}

function loaderOf(path: string): Loader | undefined {
  const [first = '', ...ids] = segmentsOf(path);
  const [list, one] = (Object.hasOwn(VIEWS, first) && VIEWS[first]) || [];
  return ids.length > 0 ? (one ?? list) : list;
}

/** A page that takes longer is shown part by part. */
const OPENING_MAX_MS = 1_000;

/** Shows a view as a whole: parts that come one by one would move what is being read. */
function Opening() {
  const { path } = usePlace();
  const [opened, setOpened] = useState<string | undefined>(undefined);
  useLayoutEffect(() => {
    let isLeft = false;
    const open = () => !isLeft && setOpened(path);
    whenWhole(open);
    pause(OPENING_MAX_MS).then(open);
    return () => {
      isLeft = true;
    };
  }, [path]);
  return html`<div class=${opened === path ? undefined : 'opening'}><${Routed} /></div>`;
}

/** Loads the module of a view when it is first shown. */
function Routed() {
  const { path } = usePlace();
  const [first = '', ...ids] = segmentsOf(path);
  const loader = loaderOf(path);
  const [view, setView] = useState<{ of: Loader; shown: ComponentType<ViewProps> } | undefined>();
  const [failed, setFailed] = useState(false);
  useLayoutEffect(() => {
    if (!loader) return;
    setFailed(false);
    loader().then(
      (loaded) => setView({ of: loader, shown: loaded.default }),
      () => setFailed(true),
    );
  }, [loader]);
  useWaiting(loader !== undefined && view?.of !== loader && !failed);
  const [id] = ids;
  useEffect(() => {
    const name = `${first.slice(0, 1).toUpperCase()}${first.slice(1)}`;
    const subject = id === undefined ? name : `${name} ${shortText(id)}`;
    document.title = subject ? `${subject} · Tallyhook` : 'Tallyhook';
  }, [first, id]);
  const shownBefore = useRef(path);
  useEffect(() => {
    // The link that was followed may be gone; the next Tab leads into the new page.
    if (shownBefore.current !== path) document.getElementById('main')?.focus();
    shownBefore.current = path;
  }, [path]);
  if (!loader) return html`<p class="empty">There is no such page. <a href="/">Overview</a></p>`;
  if (failed) {
    const problem = { status: 0, message: 'The page could not be loaded. Load it again.' };
    return html`<${Failed} problem=${problem} retry=${() => location.reload()} />`;
  }
  if (view?.of !== loader) return html`<${Loading} />`;
  return html`<${view.shown} key=${path} ids=${ids} />`;
}

/**
 * A portal link has its key behind the #, which no server is sent. It leaves the address when it
 * was taken or refused; until then the page can be loaded again.
 */
async function followPortalLink(key: string): Promise<void> {
  await signIn(key).catch((error) => {
    if (problemOf(error).status !== 401) throw error;
    whyNot = 'This link has ended. Ask for a new one.';
  });
  history.replaceState(null, '', `${BASE_PATH}/endpoints`);
}

/** Said at the sign-in, when it is shown first. */
let whyNot = meta('problem') ?? '';

/** Signs in by the address, or finds the session. */
function begin(): Promise<void> {
  const key = decoded(location.hash.slice(1));
  return insidePath(location.pathname) === '/portal' && key ? followPortalLink(key) : loadSession();
}

// The browser loads it while the session is asked for; what fails is shown by `Routed`.
loaderOf(insidePath(location.pathname) ?? '')?.().catch(() => {});
const failure = await begin().then(() => undefined, problemOf);
if (isSubscriber() && insidePath(location.pathname) === '/')
  history.replaceState(null, '', `${BASE_PATH}/endpoints`);
const place = document.getElementById('app');
const page = failure
  ? html`<main class="gate">
      <h1>Tallyhook</h1>
      <${Failed} problem=${failure} retry=${() => location.reload()} />
    </main>`
  : html`<${App} />`;
if (place) render(page as Parameters<typeof render>[0], place);
