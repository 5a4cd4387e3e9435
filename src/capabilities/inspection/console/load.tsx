import type { VNode } from 'preact';
import { type Query, useQuery } from '../../../console/client/lib/address.ts';
import { mayUse } from '../../../console/client/lib/api.ts';
import { formatBytes, visibleText } from '../../../console/client/lib/format.ts';
import { JobLink, Loaded, Notice, Page } from '../../../console/client/ui/page.tsx';
import { Columns } from './columns.tsx';
import { Files } from './files.tsx';
import { noOptions, useInspection, withChoices } from './inspection.ts';
import { Reading } from './reading.tsx';

export function Load(): VNode {
  const query = useQuery();
  const inspection = useInspection(query);
  const upload = query.get('upload');
  const file = inspection.data?.upload_id === upload ? inspection.data : undefined;
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
      {upload === '' ? (
        <Files query={query} />
      ) : (
        <Loaded of={{ ...inspection, data: file }} rows={12}>
          {(of) => (
            <div class="stack load-step" aria-busy={inspection.isLoading}>
              <Reading key={upload} query={query} inspection={of} />
              <Columns query={query} inspection={withChoices(query, of)} />
            </div>
          )}
        </Loaded>
      )}
    </Page>
  );
}

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
