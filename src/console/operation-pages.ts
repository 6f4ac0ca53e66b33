/** The markup of the pages about operations: a searchable list, and one operation. */
import { HEAD, KEY_FORM } from './pages.ts';

const heading = `<header>
  <h1><a href="/">Tallyhook</a></h1>
  <span id="state" class="pill">not connected</span>
</header>`;

export const OPERATIONS_PAGE = `<!doctype html>
<html lang="en">
<head>
<title>Operations · Tallyhook</title>
${HEAD}
</head>
<body class="wide">
${heading}
<main>
  ${KEY_FORM}
  <p id="problem" class="card bad" role="alert" hidden></p>
  <section id="board" class="card" hidden>
    <h2>Operations</h2>
    <form id="search" class="row">
      <select id="chosen-state" aria-label="State">
        <option value="">any state</option>
        <option>undecided</option><option>queued</option><option>unknown</option>
        <option>sending</option><option>accepted</option><option>executed</option>
        <option>not_executed</option><option>rejected</option><option>settled</option>
        <option>failed</option><option>cancelled</option>
      </select>
      <input id="query" type="search" aria-label="Search" spellcheck="false"
        placeholder="reference, number, hash, address or op_…">
      <button type="submit">Find</button>
    </form>
    <p id="advice" class="muted"></p>
    <div class="scroll"><table><thead><tr><th>Recorded</th><th>Kind</th><th>State</th><th>From</th>
      <th>To</th><th>Amount</th><th>Number or hash</th><th>Reference</th></tr></thead>
    <tbody id="rows"></tbody></table></div>
    <button id="more" class="quiet" hidden>More</button>
  </section>
</main>
<script>{{script}}</script>
</body>
</html>
`;

export const OPERATION_PAGE = `<!doctype html>
<html lang="en">
<head>
<title>Operation · Tallyhook</title>
${HEAD}
</head>
<body>
${heading}
<main>
  ${KEY_FORM}
  <p id="problem" class="card bad" role="alert" hidden></p>
  <div id="board" hidden>
    <section class="card">
      <h2 id="title"></h2>
      <dl id="facts"></dl>
    </section>
    <section class="card" id="act" hidden>
      <h2>Actions</h2>
      <p id="advice" class="muted"></p>
      <div id="decide" hidden>
        <label for="reason">Reason, and where it can be verified</label>
        <div class="row"><input id="reason" autocomplete="off"></div>
        <div class="row">
          <button id="executed" type="button">Propose: executed</button>
          <button id="not_executed" type="button">Propose: not executed</button>
        </div>
      </div>
      <div class="row">
        <button id="approve" type="button" hidden>Approve</button>
        <button id="cancel" type="button" hidden>Cancel</button>
      </div>
    </section>
    <section class="card">
      <h2>Decisions</h2>
      <table><thead><tr><th>No</th><th>Outcome</th><th>Reason</th><th>Proposed</th>
        <th>Approved</th></tr></thead><tbody id="decisions"></tbody></table>
    </section>
    <section class="card">
      <h2>History</h2>
      <table><thead><tr><th>At</th><th>From</th><th>To</th><th>Cause</th></tr></thead>
      <tbody id="transitions"></tbody></table>
    </section>
    <section class="card">
      <h2>Sends</h2>
      <table><thead><tr><th>No</th><th>Started</th><th>Deadline</th><th>Reason</th></tr></thead>
      <tbody id="sends"></tbody></table>
    </section>
    <section class="card">
      <h2>Evidence</h2>
      <pre id="evidence"></pre>
      <h2>Last observation before it was sent</h2>
      <pre id="pre_image"></pre>
    </section>
  </div>
</main>
<script>{{script}}</script>
</body>
</html>
`;
