/** Preact with htm: the only importer of both. Texts are always inserted as text. */
import htm from 'htm';
import { type ComponentChildren, h, type VNode } from 'preact';

export { type ComponentChildren, type ComponentType, render } from 'preact';
export { useEffect, useMemo, useRef, useState } from 'preact/hooks';

/** Markup as a template: html`<p class="muted">${text}</p>`; components as <${Card} title=…>. */
export const html = htm.bind(h) as (
  strings: TemplateStringsArray,
  ...values: unknown[]
) => VNode | VNode[];

export type Children = { children?: ComponentChildren };
