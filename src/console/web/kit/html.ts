/** Preact with htm: the only importer of both. Texts are always inserted as text. */
import htm from 'htm';
import { type ComponentChildren, h, type VNode } from 'preact';
import { BASE_PATH } from './shell.ts';

export { type ComponentChildren, type ComponentType, render } from 'preact';
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

/** Links within the console are written as if nothing stood before it: `/wallets/0x…`. */
const element = (
  type: string,
  props: { href?: unknown } | null,
  ...children: ComponentChildren[]
) => {
  const isInside = type === 'a' && typeof props?.href === 'string' && props.href.startsWith('/');
  return h(type, isInside ? { ...props, href: BASE_PATH + props.href } : props, ...children);
};

/** Markup as a template: html`<p class="muted">${text}</p>`; components as <${Card} title=…>. */
export const html = htm.bind(element) as (
  strings: TemplateStringsArray,
  ...values: unknown[]
) => VNode | VNode[];

export type Children = { children?: ComponentChildren };
