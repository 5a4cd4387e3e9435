import type { VNode } from 'preact';
import { formatCount, formatShare } from '../../console/client/lib/format.ts';
import { type LoadJob, refusedHref } from '../../console/client/lib/jobs.ts';

/**
 * Labels of the parts of a balance. Each key is the name of a count in the API and of a colour in
 * tokens.css.
 */
const parts = {
  inserted: 'new',
  updated: 'changed',
  unchanged: 'unchanged',
  removed: 'removed',
  superseded: 'repeated',
  rejected: 'rejected',
} as const;

function partsOf(counts: Readonly<Record<string, number>>) {
  return Object.entries(parts).flatMap(([name, word]) => {
    const count = counts[name] ?? 0;
    return count === 0 ? [] : [{ name, word, count, ink: { background: `var(--${name})` } }];
  });
}

interface BarProps {
  readonly counts: Readonly<Record<string, number>>;
  readonly total: number;
}

/**
 * Shows the counts of a load as a bar. Its last part represents the records that have not been read
 * yet.
 */
export function BalanceBar({ counts, total }: BarProps): VNode {
  const shown = partsOf(counts);
  const read = counts['read'] ?? 0;
  const whole = Math.max(total, read, 1);
  const label = shown.map(({ word, count }) => `${formatCount(count)} ${word}`).join(', ');
  return (
    <span class="balance-bar" role="img" aria-label={label === '' ? 'nothing read yet' : label} title={label}>
      {shown.map(({ name, count, ink }) => (
        <span key={name} style={{ ...ink, flexGrow: count / whole }} />
      ))}
      <span style={{ background: 'var(--waiting-ground)', flexGrow: (whole - read) / whole }} />
    </span>
  );
}

export function Balance({ of }: { readonly of: LoadJob }): VNode {
  const { job_id: jobId, counts, total_rows: total } = of;
  const { read } = counts;
  const shown = partsOf(counts);
  const missing = shown.reduce((rest, { count }) => rest - count, read);
  return (
    <div class="stack balance">
      <BalanceBar counts={counts} total={total} />
      <dl class="row num">
        <div>
          <dt>read</dt> <dd>{formatCount(read)}</dd>
        </div>
        {shown.map(({ name, word, count, ink }) => (
          <div key={name}>
            <dt>
              <span class="swatch" style={ink} />
              {name === 'rejected' ? <a href={refusedHref(jobId)}>{word}</a> : word}
            </dt>{' '}
            <dd>{formatCount(count)}</dd> <dd class="hint">{formatShare(count, read)}</dd>
          </div>
        ))}
        {missing === 0 ? null : (
          <div class="bad">
            <dt>do not balance</dt> <dd>{formatCount(missing)}</dd>
          </div>
        )}
      </dl>
    </div>
  );
}
