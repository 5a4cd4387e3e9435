import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useQuery } from '../lib/use-query.ts';
import { Icon } from './icons.tsx';

const shownMs = 1_500;

/** Copies the text; says for a moment, in its own place, that it did. */
export function CopyButton({
  text,
  label = 'Copy',
}: {
  readonly text: string;
  readonly label?: string;
}): VNode {
  const [state, setState] = useState<'ready' | 'done' | 'refused'>('ready');
  useEffect(() => {
    if (state === 'ready') return;
    const timer = setTimeout(() => setState('ready'), shownMs);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setState('done');
    } catch {
      setState('refused');
    }
  };
  const words = { ready: label, done: 'Copied', refused: 'Select and copy' };
  return (
    <button type="button" class="button button-quiet" onClick={() => void copy()}>
      <Icon name={state === 'done' ? 'check' : 'copy'} size={12} />
      <span aria-live="polite">{words[state]}</span>
    </button>
  );
}

export interface Form {
  /** Such as `curl`, `command line`, `schedule`. */
  readonly name: string;
  readonly text: string;
  /** What it leaves open. */
  readonly hint?: string;
}

/** The same thing as `curl`, on the command line, and so on. The form that is chosen stands in the address. */
export function CopyAs({ forms }: { readonly forms: readonly Form[] }): VNode | null {
  const query = useQuery();
  const form = forms.find((each) => each.name === query.get('as')) ?? forms[0];
  if (form === undefined) return null;
  return (
    <div class="copy-as">
      <div class="copy-as-head">
        <fieldset class="choices">
          <legend class="visually-hidden">Written as</legend>
          {forms.map((each) => (
            <label key={each.name}>
              <input
                type="radio"
                name="copy-as"
                checked={each.name === form.name}
                onChange={() => query.set({ as: each === forms[0] ? '' : each.name }, { replace: true })}
              />
              <span>{each.name}</span>
            </label>
          ))}
        </fieldset>
        <CopyButton text={form.text} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled by keyboard too */}
      <pre class="code" tabIndex={0}>
        {form.text}
      </pre>
      {form.hint === undefined ? null : <p class="hint">{form.hint}</p>}
    </div>
  );
}

/** A text as one word of a shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
