import type { VNode } from 'preact';
import { formatCount, formatShare } from '../../lib/format.ts';
import { refusedHref } from '../../lib/jobs.ts';
import type { Counts } from '../../lib/records.ts';

const parts = [
  { name: 'inserted', meaning: 'the key was not there before' },
  { name: 'updated', meaning: 'changed what was stored' },
  { name: 'unchanged', meaning: 'brought nothing new' },
  { name: 'superseded', meaning: 'a later record of the file has the same key' },
  { name: 'rejected', meaning: 'refused, and not mended since' },
  { name: 'amended', meaning: 'refused, and mended since by another job' },
] as const;
type Part = (typeof parts)[number];

interface BalanceProps {
  readonly jobId: string;
  readonly counts: Counts;
  /** Records in the file. Those that have not been read yet are the rest of the bar. */
  readonly total: number;
}

/** Shows the balance of a load: every record that was read became one of these. */
export function Balance({ jobId, counts, total }: BalanceProps): VNode {
  const read = counts['read'] ?? 0;
  const of = (part: Part): number => counts[part.name] ?? 0;
  const shown = parts.filter((part) => of(part) > 0);
  const whole = Math.max(total, read, 1);
  const sum = parts.reduce((before, part) => before + of(part), 0);
  return (
    <div class="balance">
      <div class="balance-bar" aria-hidden="true">
        {shown.map((part) => (
          <span
            key={part.name}
            class={`balance-part balance-${part.name}`}
            style={{ flexGrow: of(part) / whole }}
            title={`${part.name}: ${formatCount(of(part))}`}
          />
        ))}
        <span class="balance-rest" style={{ flexGrow: Math.max(0, whole - read) / whole }} />
      </div>
      <dl class="balance-parts">
        <div class="balance-read">
          <dt>read</dt>
          <dd class="num">{formatCount(read)}</dd>
          <dd class="balance-share">
            {sum === read ? '= the sum of these' : `${formatCount(sum - read)} do not balance`}
          </dd>
        </div>
        {parts.map((part) => (
          <div key={part.name} class={of(part) === 0 ? 'balance-none' : undefined} title={part.meaning}>
            <dt>
              <span class={`swatch balance-${part.name}`} />
              {part.name === 'rejected' && of(part) > 0 ? (
                <a href={refusedHref(jobId)}>rejected</a>
              ) : (
                part.name
              )}
            </dt>
            <dd class="num">{formatCount(of(part))}</dd>
            <dd class="balance-share num">{formatShare(of(part), Math.max(read, 1))}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
