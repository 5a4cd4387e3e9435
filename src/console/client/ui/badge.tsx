import type { ComponentChildren, VNode } from 'preact';
import { Icon, type IconName } from './icons.tsx';

export type Tone = 'good' | 'busy' | 'waiting' | 'bad' | 'warn' | 'off';

const icons: Readonly<Record<Tone, IconName>> = {
  good: 'check',
  busy: 'half',
  waiting: 'circle',
  bad: 'cross',
  warn: 'warning',
  off: 'slash',
};

/** A state by its word, a shape and a colour, so that no one of them is needed alone. */
export function Badge({
  tone,
  children,
}: {
  readonly tone: Tone;
  readonly children: ComponentChildren;
}): VNode {
  return (
    <span class={`badge tone-${tone}`}>
      <Icon name={icons[tone]} size={12} />
      {children}
    </span>
  );
}

const jobTones: Readonly<Record<string, Tone>> = {
  queued: 'waiting',
  processing: 'busy',
  completed: 'good',
  failed: 'bad',
  cancelled: 'off',
};

export function StatusBadge({ status }: { readonly status: string }): VNode {
  return <Badge tone={jobTones[status] ?? 'waiting'}>{status}</Badge>;
}
