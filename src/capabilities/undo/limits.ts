export const MAX_SHOWN_UNDONE = 100;
export const MAX_SHOWN_LATER_LOADS = 20;
