import { parts } from 'sluice:capabilities';
import type { VNode } from 'preact';
import { screenHref } from '../lib/address.ts';

/** Links to the first screen on which records can be loaded. */
export function WayIn(): VNode | null {
  const screens = parts.flatMap(({ screens: own = [] }) => own);
  const first = screens.find(({ nav }) => nav?.[2] === 'In');
  return first?.nav === undefined ? null : <a href={screenHref(first.path)}>{first.nav[0]}</a>;
}
