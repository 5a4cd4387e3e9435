import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { Scope } from '../../../domain/caller.ts';
import type { ApiError } from '../lib/api.ts';
import { useSubmit } from '../lib/data.ts';
import { Button, CopyButton, Field } from './controls.tsx';
import { Problems } from './page.tsx';

/*
 * Editor for definitions as text, which the service checks. If the `details` of a problem contain
 * `line 3`, as `throwFileProblems` writes them, the third line is marked.
 */

interface EditorFormProps {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly text: string;
  readonly example?: string;
  readonly onInput: (text: string) => void;
  readonly verb: string | null;
  readonly scopes?: readonly Scope[];
  readonly isComplete: boolean;
  readonly act: () => Promise<unknown>;
  /** Error of another action that was tried with the same text. */
  readonly error?: ApiError | null;
  readonly beside?: ComponentChildren;
  readonly children?: ComponentChildren;
}

export function EditorForm(props: EditorFormProps): VNode {
  const { label, hint, text, example, onInput, verb, scopes = [], isComplete, beside, children } = props;
  const saving = useSubmit(props.act);
  const error = saving.error ?? props.error ?? null;
  const area = useRef<HTMLTextAreaElement>(null);
  // The line numbers of an error apply only to the refused text.
  const refusedText = useMemo(() => text, [error]);
  const marks = text === refusedText ? linesOf(error) : new Set<number>();
  const lines = text.split('\n');
  useEffect(() => {
    const [line] = linesOf(error);
    if (line === undefined) return;
    const start = lines.slice(0, line - 1).join('\n').length + (line > 1 ? 1 : 0);
    area.current?.focus();
    area.current?.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
  }, [error]);
  return (
    <form class="stack" onSubmit={saving.onSubmit}>
      {children}
      <Field label={label} hint={hint}>
        <span class="editor">
          <span class="editor-lines" aria-hidden="true">
            {lines.map((_, at) => (
              <span key={at} data-marked={marks.has(at + 1) ? '' : undefined} />
            ))}
          </span>
          <textarea
            ref={area}
            rows={Math.max(8, lines.length)}
            placeholder={example}
            wrap="off"
            spellcheck={false}
            autocomplete="off"
            aria-invalid={marks.size > 0}
            value={text}
            onInput={(event) => onInput(event.currentTarget.value)}
          />
        </span>
      </Field>
      <Problems error={error} />
      <div class="row">
        {verb === null ? null : (
          <Button type="submit" look="main" scopes={scopes} disabled={saving.isRunning || !isComplete}>
            {verb}
          </Button>
        )}
        {beside}
        <CopyButton text={text} />
      </div>
    </form>
  );
}

function linesOf(error: ApiError | null): ReadonlySet<number> {
  const lines = (error?.problems ?? []).flatMap(({ details }) => {
    const line = /\bline (\d+)/.exec(details)?.[1];
    return line === undefined ? [] : [Number(line)];
  });
  return new Set(lines.sort((a, b) => a - b));
}
