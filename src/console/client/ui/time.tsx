import type { VNode } from 'preact';
import { formatAgo, formatTime, timeZone } from '../lib/format.ts';

/** An instant: in the reader's zone, with the exact one and the zone on hover. `ago`: how long ago it is. */
export function Time({ at, ago = false }: { readonly at: string | null; readonly ago?: boolean }): VNode {
  if (at === null) return <span class="faint">–</span>;
  const full = `${formatTime(at)} ${timeZone} · ${at}`;
  return (
    <time dateTime={at} title={full} class="num">
      {ago ? formatAgo(at) : formatTime(at)}
    </time>
  );
}
