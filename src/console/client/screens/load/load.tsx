import type { VNode } from 'preact';
import { mayUse, type Query, useQuery } from '../../lib/api.ts';
import { formatBytes, visibleText } from '../../lib/format.ts';
import { JobLink, Loading, Notice, Page, Problems } from '../../ui/page.tsx';
import { Columns } from './columns.tsx';
import { Files } from './files.tsx';
import { noOptions, useInspection } from './inspection.ts';
import { withChoices } from './mapping.ts';
import { Reading } from './reading.tsx';

/**
 * A file before it is planned; the page of its job has what follows. Everything that was chosen stands in the address, and the server
 * keeps the file: any browser can go on, and nothing is sent twice.
 */
export function Load(): VNode {
  const query = useQuery();
  const { data, error, isLoading, reload } = useInspection(query);
  const upload = query.get('upload');
  const file = data?.upload_id === upload ? data : undefined;
  return (
    <Page
      title="Load a file"
      aside={
        file === undefined ? null : (
          <span class="mono muted">
            {visibleText(file.filename ?? '')} {formatBytes(file.file_size)}
          </span>
        )
      }
      actions={
        upload === '' ? null : (
          <a class="button" href={query.href({ ...noOptions, upload: undefined })}>
            Another file
          </a>
        )
      }
    >
      {mayUse('import') ? null : (
        <Notice>Your key lacks the scope import: you can look, but not load.</Notice>
      )}
      <LikeJob query={query} />
      {upload === '' ? <Files query={query} /> : null}
      <Problems error={error} onRetry={reload} />
      {upload !== '' && file === undefined && error === null ? <Loading rows={12} /> : null}
      {file === undefined ? null : (
        <div class="stack load-step" aria-busy={isLoading}>
          <Reading key={upload} query={query} found={file} />
          <Columns query={query} found={withChoices(query, file)} />
        </div>
      )}
    </Page>
  );
}

/** Names the earlier load whose options apply where none are chosen here. */
function LikeJob({ query }: { readonly query: Query }): VNode | null {
  const job = query.get('options_of');
  if (job === '') return null;
  return (
    <p class="row muted">
      <span>
        Options that are not chosen here are those of <JobLink id={job} />.
      </span>
      <a href={query.href({ options_of: undefined })}>Do not use them</a>
    </p>
  );
}
