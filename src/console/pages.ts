/** The markup of the pages, without data. The scripts insert data as text, never as markup. */

export const HEAD = `<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<style>{{style}}</style>`;

export const KEY_FORM = `<form id="key-form" class="card" hidden>
  <label for="key">A key with the scope <b>read</b></label>
  <div class="row">
    <input id="key" type="password" autocomplete="off" spellcheck="false" placeholder="thk_…"
      required>
    <button type="submit">Show</button>
  </div>
  <p class="muted">The key is stored in this tab only and removed when the tab closes.</p>
  <p id="key-problem" class="bad" role="alert"></p>
</form>`;

export const START_PAGE = `<!doctype html>
<html lang="en">
<head>
<title>Tallyhook</title>
${HEAD}
</head>
<body>
<header>
  <h1>Tallyhook</h1>
  <span id="state" class="pill">not connected</span>
  <button id="forget" class="quiet" hidden>Forget the key</button>
</header>
<p class="lead">Records every write to the token service, reconciles operations, ledger and
  observations, and sends signed webhooks.</p>
<main>
  ${KEY_FORM}
  <p id="problem" class="card bad" role="alert" hidden></p>
  <div id="board" hidden>
    <p id="freeze" class="card bad" role="alert" hidden></p>
    <section class="tiles" aria-label="Counts" id="tiles"></section>
    <section class="card">
      <h2>The service</h2>
      <dl id="service"></dl>
    </section>
    <section class="card">
      <h2>Backlog per stage</h2>
      <table><thead><tr><th>Stage</th><th>Waiting</th><th>Lag</th></tr></thead>
      <tbody id="stages"></tbody></table>
    </section>
    <section class="card">
      <h2>Open operations by state · <a href="/operations">all</a></h2>
      <table><thead><tr><th>State</th><th>Operations</th></tr></thead>
      <tbody id="operations"></tbody></table>
    </section>
    <section class="card">
      <h2>Latest reports</h2>
      <table><thead><tr><th>Period</th><th>Verdict</th><th>Made</th></tr></thead>
      <tbody id="reports"></tbody></table>
    </section>
  </div>
</main>
<footer>
  <a href="/api/openapi.json">API (OpenAPI 3.1)</a>
  <a href="/metrics">Metrics</a>
  <a href="/healthz">Health</a>
  <a href="/readyz">Ready</a>
  <a href="/.well-known/webhook-keys">Webhook keys</a>
  <span id="at" class="muted"></span>
</footer>
<noscript><p class="card">This page needs scripts. The API is described at
  <a href="/api/openapi.json">/api/openapi.json</a>.</p></noscript>
<script>{{script}}</script>
</body>
</html>
`;

export const REPORT_PAGE = `<!doctype html>
<html lang="en">
<head>
<title>Report · Tallyhook</title>
${HEAD}
</head>
<body class="wide">
<header>
  <h1><a href="/">Tallyhook</a></h1>
  <span id="state" class="pill">report</span>
  <button id="csv" class="quiet" hidden>CSV</button>
  <button id="json" class="quiet" hidden>JSON</button>
</header>
<main>
  ${KEY_FORM}
  <p id="problem" class="card bad" role="alert" hidden></p>
  <iframe id="report" sandbox="" title="The report" hidden></iframe>
</main>
<script>{{script}}</script>
</body>
</html>
`;
