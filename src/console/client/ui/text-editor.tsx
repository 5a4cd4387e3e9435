import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { ApiError } from '../lib/api.ts';
import { Field } from './controls.tsx';
import { Problems } from './page.tsx';

/*
 * An editor for a definition as text, such as rules, a segment or a schedule. The service finds the errors: an entry of
 * the error record whose `details` contain `line 3` marks the third line. The error is that of the action that sends the
 * text:
 *
 *   const [text, setText] = useState(file);
 *   const applying = useSubmit(() => api('/v1/rules', { method: 'PUT', body: { file: text } }));
 *   …
 *   <TextEditor label="As YAML" text={text} onInput={setText} error={applying.error} />
 *
 * The editor shows the error too, also its entries without a line. A route gets such entries from `throwFileProblems`.
 */

interface TextEditorProps {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly text: string;
  /** Shown while the text is empty. */
  readonly example?: string;
  readonly onInput: (text: string) => void;
  readonly error: ApiError | null;
}

export function TextEditor({ label, hint, text, example, onInput, error }: TextEditorProps): VNode {
  const area = useRef<HTMLTextAreaElement>(null);
  // A changed text has other lines.
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
    <>
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
    </>
  );
}

/** Returns the lines that the error names, counted from 1, in ascending order. */
function linesOf(error: ApiError | null): ReadonlySet<number> {
  const lines = (error?.problems ?? []).flatMap(({ details }) => {
    const line = /\bline (\d+)/.exec(details)?.[1];
    return line === undefined ? [] : [Number(line)];
  });
  return new Set(lines.sort((a, b) => a - b));
}
