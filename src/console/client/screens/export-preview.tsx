import type { VNode } from 'preact';
import type { ApiError } from '../lib/api.ts';
import { formatBytes, formatCount } from '../lib/format.ts';
import { Section } from '../ui/page.tsx';
import { Loading, Problems } from '../ui/problems.tsx';

export interface ExportPreview {
  readonly rows: number;
  readonly is_exact: boolean;
  readonly bytes: number;
  readonly files: readonly {
    readonly dataset: string;
    readonly rows: number;
    readonly is_exact: boolean;
    readonly bytes: number;
    readonly header: string | null;
    readonly first_rows: readonly string[];
  }[];
  readonly warnings: readonly { readonly message: string; readonly details: string }[];
}

const names: Readonly<Record<string, string>> = {
  users: 'Users',
  companies: 'Companies',
  events: 'Events',
  stream: 'Stream of all kinds',
};

/** What the export would hold: rows and size, and how its files begin. The server says all of it. */
export function PreviewPanel({
  data,
  error,
  isLoading,
  reload,
}: {
  readonly data: ExportPreview | undefined;
  readonly error: ApiError | null;
  readonly isLoading: boolean;
  readonly reload: () => void;
}): VNode {
  return (
    <Section title="Preview" aside={isLoading ? <span class="faint">Counting …</span> : null}>
      <Problems error={error} onRetry={reload} />
      {data === undefined || error !== null ? (
        error === null ? (
          <Loading rows={5} label="Counting" />
        ) : null
      ) : (
        <div class="stack" aria-live="polite" aria-busy={isLoading}>
          <dl class="figures">
            <div>
              <dt>Rows</dt>
              <dd>
                {about(data.is_exact)}
                {formatCount(data.rows)}
              </dd>
            </div>
            <div>
              <dt>Size, estimated</dt>
              <dd>{formatBytes(data.bytes)}</dd>
            </div>
          </dl>
          {data.warnings.map(({ message, details }) => (
            <p key={details} class="notice">
              {message}: {details}
            </p>
          ))}
          {data.files.map((file) => (
            <div key={file.dataset} class="begins">
              <h3>
                {names[file.dataset] ?? file.dataset}
                <span class="faint num">
                  {' '}
                  {about(file.is_exact)}
                  {formatCount(file.rows)} · {formatBytes(file.bytes)}
                </span>
              </h3>
              {file.first_rows.length === 0 ? (
                <p class="faint">No rows</p>
              ) : (
                // biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled by keyboard too
                <pre class="code" tabIndex={0}>
                  {file.header === null ? null : <b>{`${file.header}\n`}</b>}
                  {file.first_rows.join('\n')}
                </pre>
              )}
            </div>
          ))}
        </div>
      )}
    </Section>
  );
}

function about(isExact: boolean): string {
  return isExact ? '' : 'about ';
}
