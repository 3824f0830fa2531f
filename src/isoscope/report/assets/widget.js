// The report's sliders and points in a notebook: a page in a frame of its own, which tells the selected rows.
function render({ model, el }) {
  const frame = document.createElement('iframe');
  frame.setAttribute('sandbox', 'allow-scripts'); // no access to the notebook
  frame.setAttribute('title', 'isoscope');
  frame.style.cssText = 'width: 100%; height: 900px; border: 0';
  const tell = () => frame.contentWindow && frame.contentWindow.postMessage({ selected: model.get('selected') }, '*');
  const hear = ({ source, data }) => {
    if (source !== frame.contentWindow || !data || data.isoscope !== true) return;
    if (data.ready) tell();
    if (Number.isFinite(data.height)) frame.style.height = `${Math.min(Math.ceil(data.height) + 8, 2000)}px`;
    if (Array.isArray(data.rows)) {
      model.set('selected', data.rows);
      model.save_changes();
    }
  };
  window.addEventListener('message', hear);
  model.on('change:selected', tell);
  frame.srcdoc = model.get('page');
  el.append(frame);
  return () => {
    window.removeEventListener('message', hear);
    model.off('change:selected', tell);
  };
}
export default { render };
