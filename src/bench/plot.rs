//! Speed against size as a chart: the score is the color, the spread of the runs a line.

use plotters::prelude::*;
use plotters::style::FontTransform;

use super::{Report, ratio};

/// Pixels.
const SIZE: (u32, u32) = (900, 560);

/// Why there is no chart.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// There is no model with a run.
    #[error("nothing was measured")]
    Empty,
    /// The drawing library's.
    #[error("the chart cannot be drawn: {reason}")]
    Draw {
        /// What it says.
        reason: String,
    },
}

/// The chart of a report, an SVG document.
///
/// # Errors
/// [`PlotError`].
pub fn svg(report: &Report) -> Result<String, PlotError> {
    let points: Vec<Point> = report
        .models
        .iter()
        .filter_map(|model| {
            let spread = model.spread(|run| run.calls_per_s)?;
            let megabytes = ratio(model.file_bytes, 1_000_000);
            Some(Point {
                name: model.model.clone(),
                megabytes,
                calls: (spread.min, spread.median, spread.max),
                score: model.score,
            })
        })
        .collect();
    if points.is_empty() {
        return Err(PlotError::Empty);
    }
    let mut text = String::new();
    draw(report, &points, &mut text)
        .map_err(|error| PlotError::Draw { reason: error.to_string() })?;
    Ok(text)
}

struct Point {
    name: String,
    megabytes: f64,
    calls: (f64, f64, f64),
    score: Option<f64>,
}

fn draw(
    report: &Report,
    points: &[Point],
    text: &mut String,
) -> Result<(), Box<dyn std::error::Error>> {
    let most = |of: &dyn Fn(&Point) -> f64| points.iter().map(of).fold(0.0, f64::max);
    let (widest, highest) = (most(&|point| point.megabytes), most(&|point| point.calls.2));
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let caption =
        format!("{} prompts, {}, {} threads", report.n_prompts, report.cpu, report.n_threads);
    let mut chart = ChartBuilder::on(&area)
        .caption(caption, ("sans-serif", 17))
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..widest * 1.25, 0.0..highest * 1.15)?;
    chart
        .configure_mesh()
        .x_desc("file size, MB")
        .y_desc("calls a second")
        .label_style(("sans-serif", 14))
        .axis_desc_style(("sans-serif", 15))
        .light_line_style(WHITE)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.1}"))
        .draw()?;
    let mut label_rows: Vec<(f64, f64)> = Vec::new();
    for point in points {
        let (min, median, max) = point.calls;
        let x = point.megabytes;
        chart.draw_series(LineSeries::new([(x, min), (x, max)], BLACK.mix(0.5)))?;
        chart.draw_series([Circle::new((x, median), 7, color(point.score).filled())])?;
        // Labels that would cover each other are moved down a line.
        let line = highest * 0.045;
        let mut y = median;
        while label_rows.iter().any(|(other_x, other_y)| {
            (other_x - x).abs() < widest * 0.3 && (other_y - y).abs() < line
        }) {
            y -= line;
        }
        label_rows.push((x, y));
        let style = ("sans-serif", 14).into_font().transform(FontTransform::None);
        chart.draw_series([Text::new(
            point.name.clone(),
            (x + widest * 0.015, y + line * 0.45),
            style.clone(),
        )])?;
        if let Some(score) = point.score {
            let score = format!("{:.0} % right", 100.0 * score);
            label_rows.push((x, y - line));
            chart.draw_series([Text::new(
                score,
                (x + widest * 0.015, y - line * 0.45),
                style.color(&BLACK.mix(0.6)),
            )])?;
        }
    }
    area.present()?;
    Ok(())
}

/// From red, nothing right, to green; gray where nothing is known.
fn color(score: Option<f64>) -> HSLColor {
    score.map_or(HSLColor(0.0, 0.0, 0.5), |score| {
        HSLColor(score.clamp(0.0, 1.0).powi(2) / 3.0, 0.75, 0.42)
    })
}
