/* Before anything is painted: the theme that was chosen here. A classic script of its own, so that nothing flashes. */
{
  const chosen = localStorage.getItem('sluice-theme');
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset['theme'] = chosen;
}
