import { signal } from '@preact/signals';
import type { VNode } from 'preact';
import { useEffect } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { screenHref } from '../lib/address.ts';
import { Dialog } from '../ui/dialog.tsx';
import { screens } from './screens.ts';

/** Tells whether the page of keys is open. */
export const help = signal(false);

const general: readonly (readonly [string, string])[] = [
  ['?', 'this page'],
  ['/', 'to the first filter'],
  ['j  k', 'next and previous row, from anywhere on the page'],
  ['↓  ↑', 'the same, from a row'],
  ['Enter', 'open the row'],
  ['Esc', 'close a dialog'],
];

/** The time after `g` within which the key of a screen counts. */
const sequenceMs = 1_500;

/** Listens for keys that are not typed into a field, and shows the list of keys. */
export function Keys(): VNode | null {
  const { route } = useLocation();
  useEffect(() => {
    let goingSince = Number.NEGATIVE_INFINITY;
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector('dialog[open]') !== null) return;
      const isGoing = event.timeStamp - goingSince < sequenceMs;
      goingSince = event.key === 'g' ? event.timeStamp : Number.NEGATIVE_INFINITY;
      if (event.key === '?') help.value = true;
      else if (event.key === '/' && focusFilter()) event.preventDefault();
      else if (isGoing) {
        const screen = screens.find(({ nav }) => nav?.key === event.key);
        if (screen !== undefined) route(screenHref(screen.path));
      } else if ((event.key === 'j' || event.key === 'k') && focusRow(event.target)) event.preventDefault();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, []);
  if (!help.value) return null;
  const close = (): void => {
    help.value = false;
  };
  const places = screens.flatMap(({ nav }) =>
    nav === undefined ? [] : [[`g ${nav.key}`, nav.title] as const],
  );
  return (
    <Dialog title="Keyboard" onClose={close}>
      <dl class="keys">
        {[...general, ...places].map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split(/\s+/).map((each) => (
                <kbd key={each}>{each}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !['radio', 'checkbox', 'button'].includes(target.type);
  return (
    target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement
  );
}

/**
 * Gives the focus to the selected row of a list, or to its first; from a button in a row, to that row. Returns false if there
 * is none.
 */
function focusRow(from: EventTarget | null): boolean {
  const here = from instanceof Element ? from : null;
  // On a row, the table handles the keys.
  if (here?.closest('[data-row]') != null) return false;
  const row =
    here?.closest('tr')?.querySelector<HTMLElement>('[data-row]') ??
    document.querySelector<HTMLElement>('#main [data-selected] [data-row]') ??
    document.querySelector<HTMLElement>('#main [data-row]');
  row?.focus();
  return row !== null;
}

/** Returns false if the page has no filter. */
function focusFilter(): boolean {
  const first = document.querySelector<HTMLElement>('.filters input, .filters select');
  first?.focus();
  return first !== null;
}
