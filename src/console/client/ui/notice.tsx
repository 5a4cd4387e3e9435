import type { ComponentChildren, VNode } from 'preact';
import { Icon } from './icons.tsx';

/** Something to know that is no error of the page. */
export function Notice({ children }: { readonly children: ComponentChildren }): VNode {
  return (
    <div class="notice">
      <Icon name="warning" />
      <p class="break">{children}</p>
    </div>
  );
}
